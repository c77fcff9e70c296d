"""The engine's view of the cluster: node columns, pods by node, assumptions, hypotheses.

Law: only `Cluster.apply` (observed changes) and `assume`/`forget` (scheduling decisions) write the
state. All other code either reads the state or changes it inside a `fork()`, which is reverted.
"""
