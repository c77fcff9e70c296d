"""The plugins of Kubernetes 1.19 that differ from the current plugins or no longer exist.

Plugins that have not changed since 1.19 are in `engine.plugins.registry`. The current
NodeResourcesFit computes the score of NodeResourcesLeastAllocated.

upstream: pkg/scheduler/framework/plugins at v1.19
"""
