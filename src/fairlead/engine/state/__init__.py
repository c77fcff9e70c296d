"""The engine's view of the cluster: node columns, pods by node, assumed and hypothetical changes.

Only assumptions and `Cluster.apply`, which applies observed changes, write the state permanently.
An assumption records a scheduling decision about pods, volumes or devices before the API shows the
decision. All other code either reads the state or changes the state inside a `fork()`. If a fork is
not committed, its changes are reverted.

A *row* is the index of a node in the columns of `NodeTable`. A *shape* is the part of a pod spec
that matters for scheduling; pods with equal parts share one shape.
"""
