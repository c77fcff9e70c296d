"""The engine's view of the cluster: node columns, pods by node, assumed and hypothetical changes.

Only `Cluster.apply` (observed changes) and assumptions (scheduling decisions about pods, volumes
and devices that the API does not show yet) write the state. All other code either reads the state
or changes it inside a `fork()`, which is reverted unless it is committed.

A *row* is the index of a node in the columns of `NodeTable`. A *shape* is the part of a pod spec
that matters for scheduling; equivalent pods share it.
"""
