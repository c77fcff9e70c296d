"""Validation: checks objects by themselves; one package per API group, as upstream's pkg/apis.

Law: pure. Every rule yields all errors, each with the name of its field, in the words of the API
server. The objects already have their defaults. Rules that involve other objects are in admission.

A store calls `validator` with the `KindRules` of the kind's strategy. A group's module or package
has the rules of its kinds that other code uses too; short rules are beside the strategy. `meta` has
the parts that all groups share: field errors, formats, ObjectMeta, and the checks of field facts.
"""
