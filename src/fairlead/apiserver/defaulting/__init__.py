"""Defaulting: everything that an object says although its author did not.

Law: pure; where nothing is missing the same object comes back.

`defaulter` completes an object by its schema: first the defaults of single fields, which are rows
of `schema.facts`, then the rules of types whose defaults depend on several fields. `simulation`
applies those few that a simulated cluster needs.
"""
