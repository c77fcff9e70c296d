"""The in-process API server: objects with versions, and the rules under which they change.

Law: it knows `fairlead.api` only. `now` (ns since 1970) and the ids of new objects come in from
outside, so equal requests in equal order give equal objects. Stored JSON values are never
mutated: whoever gets one may keep it, and nobody may change it.

`storage` keeps versions, `store` is the request path over it (defaults, admission, validation,
graceful deletion), `binding` and `eviction` are the subresources that the scheduler and drains
use. What an API server's HTTP face needs goes through `store` as well.
"""
