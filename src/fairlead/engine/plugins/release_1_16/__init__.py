"""Plugins as Kubernetes 1.16 had them, where they differed from today's: a version profile.

kube-batch was built on 1.16, so its configurations mean these. Scores are whole numbers 0..10 over
the feasible nodes, and keep the names they had ("LeastRequestedPriority"). What has not changed
since (NodeAffinity's filter, NodePorts, TaintToleration, InterPodAffinity's filter) is
`engine.plugins.registry`'s own.

upstream: pkg/scheduler/algorithm/{predicates,priorities} at v1.16.8
"""
