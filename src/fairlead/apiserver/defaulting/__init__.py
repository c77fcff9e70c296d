"""Defaulting: sets the absent fields of an object.

Law: all functions are pure. An object that already has all its defaults is returned unchanged.

`defaulter` sets all defaults that the schema of an object requires. It first sets the defaults of
single fields, which are rows of `api.facts`. Then it runs the rules of types whose defaults depend
on several fields. `simulation` applies only the defaults that a simulated cluster needs.
"""
