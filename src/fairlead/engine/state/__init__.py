"""The engine's view of the cluster: node columns, pods by node, assumptions, hypotheses.

Law: only `Cluster.apply` (observed changes) and the pair assume/forget (scheduling decisions)
write; everything else reads, or tests a hypothesis inside a `fork()`.
"""
