"""Defaulting: fills in the absent fields of an object.

Law: pure; an object that is complete is returned unchanged.

`defaulter` completes an object by its schema: first the defaults of single fields, which are rows
of `api.facts`, then the rules of types whose defaults depend on several fields. `simulation`
applies only the defaults that a simulated cluster needs.
"""
