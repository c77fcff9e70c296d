"""Patches: the four ways to say what shall be different, and who said what last.

Law: pure functions of JSON values, schemas and names. Nothing is mutated: what a patch does not
touch is shared with the original. All refusals are `ApiError`, in upstream's words.

`json_patch`, `merge` and `strategic_merge` change an object by what a client sends;
`server_side_apply` by what an applier wants to be so. `managed_fields` keeps track of who owns
which field, on `ownership` (the rules), `field_set` (sets) and `typed` (walks by schema).
"""
