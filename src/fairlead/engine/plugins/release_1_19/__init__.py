"""The plugins of Kubernetes 1.19 that differ from the current plugins or no longer exist.

Plugins that have not changed since 1.19 are in `engine.plugins.registry`. The 1.19 plugin
NodeResourcesLeastAllocated is not in this package, because the current NodeResourcesFit computes
the same score.

upstream: pkg/scheduler/framework/plugins at v1.19
"""
