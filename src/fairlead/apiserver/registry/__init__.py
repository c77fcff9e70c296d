"""The generic registry: processes an object between a request and storage.

`store.Store` has one function for each verb. A kind's `strategy.ResourceStrategy` adds steps to
these functions.

`now` (ns since 1970) and the ids of new objects are arguments.

upstream: apiserver/pkg/registry, pkg/registry
"""
