"""Validation: checks each object by itself, with a package per API group as in upstream's pkg/apis.

Every rule is a pure function that yields all errors, each with the path of its field, in the words
of the API server. The objects already have their defaults. Rules that involve other objects are in
admission.

A store calls `validator` with the `KindRules` of the kind's strategy (`registry.strategies`). A
rule that only one strategy uses may be in the module of that strategy. All other rules are here, in
the module or package of their group. `meta` contains the parts that all groups share: field errors,
formats, ObjectMeta, and the checks of single fields, whose rules are data (`api.facts`).
"""
