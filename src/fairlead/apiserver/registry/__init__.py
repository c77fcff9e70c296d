"""The generic registry: processes an object between a request and storage.

`store.Store` has one function for each verb. A kind's `strategy.ResourceStrategy` adds steps to
these functions.

The functions do not read a clock: they take the time as `now` (ns since 1970). The store's `ids`
generates the uids and names of new objects.

upstream: apiserver/pkg/registry, pkg/registry
"""
