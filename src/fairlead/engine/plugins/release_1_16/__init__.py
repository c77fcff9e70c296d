"""The plugins of Kubernetes 1.16 that differ from the current plugins.

`engine.batch` uses these plugins, because kube-batch was built on Kubernetes 1.16. Scores are
integers from 0 to 10. The plugins have their old names, such as "LeastRequestedPriority". Plugins
that have not changed since 1.16 are in `engine.plugins.registry`.

upstream: pkg/scheduler/algorithm/{predicates,priorities} at v1.16.8
"""
