"""The plugins of Kubernetes 1.16 that differ from the current ones.

kube-batch was built on 1.16, so its configurations refer to these. Scores are integers 0..10 over
the feasible nodes, and the plugins keep their names ("LeastRequestedPriority"). Plugins that have
not changed since (NodeAffinity's filter, NodePorts, TaintToleration, InterPodAffinity's filter) are
in `engine.plugins.registry`.

upstream: pkg/scheduler/algorithm/{predicates,priorities} at v1.16.8
"""
