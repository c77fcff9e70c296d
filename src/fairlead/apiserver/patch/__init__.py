"""The four patch types, and managedFields.

Law: pure functions of JSON values, schemas and names. The original object is never mutated: the
result shares the parts that a patch does not change. `strategicpatch` changes the patch, but not
the original object, in place. Errors are `ApiError` in upstream's words.

`jsonpatch` (RFC 6902), `merge_patch` (RFC 7386) and `strategicpatch` change an object as the client
describes. `managedfields` implements server-side apply. For every write, it also records which
manager owns which field.
"""
