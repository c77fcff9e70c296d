"""The four patch types, and managedFields.

All functions are pure, except that `strategicpatch` changes the patch in place. The result shares
the parts of the original object that a patch does not change. Errors are `ApiError` in upstream's
words.
"""
