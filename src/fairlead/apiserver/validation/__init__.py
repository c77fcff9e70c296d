"""Validation: whether an object makes sense by itself, by API group as in upstream's pkg/apis.

Law: pure; every rule names the field it is about and yields all that is wrong, in the words of
the API server, about an object that has its defaults. Other objects are the concern of admission.

A store calls `validator` with the `KindRules` of the kind's strategy. A group's module or package
has the rules of kinds that other code uses, too; short rules are beside the strategy itself. `meta`
has what all share: field errors, formats, ObjectMeta, and the walker of the facts about fields.
"""
