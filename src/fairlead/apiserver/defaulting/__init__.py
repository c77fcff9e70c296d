"""Defaulting: sets the absent fields of an object.

Law: pure. An object in which no default is missing is returned unchanged.

`defaulter` applies all defaults by the schema of an object: first the defaults of single fields,
which are rows of `api.facts`, then the rules of types whose defaults depend on several fields.
`simulation` applies only the defaults that a simulated cluster needs.
"""
