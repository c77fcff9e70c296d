"""The plugins of Kubernetes 1.19 that differ from the current plugins or no longer exist.

Scores are integers from 0 to 100. Plugins that have not changed since 1.19 are in
`engine.plugins.registry`. The score of NodeResourcesLeastAllocated is computed by the current
NodeResourcesFit.

upstream: pkg/scheduler/framework/plugins at v1.19
"""
