"""Validation: whether an object makes sense by itself, by API group as in upstream's pkg/apis.

Law: pure; every rule names the field it is about and yields all that is wrong, in the words of
the API server, about an object that has its defaults. Other objects are the concern of admission.

`validator` is what a store asks. `rules` has one row per kind. Each group's module or package
holds the rules of its kinds, `meta` what they share: field errors, formats, ObjectMeta.
"""
