"""Defaulting: everything that a served object says although its author did not.

Law: pure; where nothing is missing the same object comes back. A simulated cluster does with the
few defaults that its rules read (`fairlead.apiserver.defaults`); what clients read from a server
has all of them, in every kind.

`completion` walks an object by its schema and asks the rule of each type on its way: `constants`
for those that only fill in values, the other modules for those that look around.
"""
