"""The generic registry: processes an object between a request and storage.

`store.Store` has one function with numbered steps for each verb. A kind's
`strategy.ResourceStrategy` adds steps for that kind; `strategies/<group>` has the strategies of
each API group.

Law: pure. `now` (ns since 1970) and the ids of new objects are arguments.

upstream: apiserver/pkg/registry, pkg/registry
"""
