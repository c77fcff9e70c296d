"""The plugins of Kubernetes 1.19 that differ from today's or no longer exist.

Scores are integers 0..100 over the feasible nodes. Plugins that have not changed since are those of
`engine.plugins.registry`; NodeResourcesLeastAllocated is today's NodeResourcesFit.

upstream: pkg/scheduler/framework/plugins at v1.19
"""
