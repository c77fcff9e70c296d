"""The four patch types, and managedFields.

Law: pure functions of JSON values, schemas and names. Nothing is mutated: parts that a patch does
not touch are shared with the original. Refusals are `ApiError` in upstream's words.

`jsonpatch` (RFC 6902), `merge_patch` (RFC 7386) and `strategicpatch` change an object as the client
describes. `managedfields` has server-side apply, and records for every write which manager owns
which field.
"""
