"""The four patch types, and managedFields.

Law: pure functions of JSON values, schemas and names. The original is never mutated: the result
shares the parts that a patch does not change. Only a strategic merge patch itself is changed in
place. Errors are `ApiError` in upstream's words.

`jsonpatch` (RFC 6902), `merge_patch` (RFC 7386) and `strategicpatch` change an object as the client
describes. `managedfields` implements server-side apply, and records for every write which manager
owns which field.
"""
