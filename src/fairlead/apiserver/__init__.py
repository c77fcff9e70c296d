"""The in-process API server: versioned objects and the rules under which they change.

Law: it imports `fairlead.api` and `fairlead.cel` only. `now` (ns since 1970) and the ids of new
objects are arguments, so equal requests in equal order give equal objects. Stored JSON values are
never mutated: a reader may keep one, but must not change it.

`storage` keeps the versions, `registry` has the rules for create, update and delete (`Store`, with
a strategy for each kind). What the HTTP server needs goes through the store as well.
"""
