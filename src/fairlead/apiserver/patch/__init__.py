"""The four patch types, and managedFields.

The functions do not change the original object; `strategicpatch` changes the patch in place. The
result shares the parts of the original object that a patch does not change. Errors are `ApiError`
in upstream's words.
"""
