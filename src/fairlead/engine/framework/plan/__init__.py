"""Plans: plugin results cached per shape and node.

A *shape* (`Shape`) is the part of a pod's spec that scheduling reads; many pods share one shape. A
*row* is the index of a node in `NodeTable`. A *position* is an index into the rows of a plan. A
*code* is the index of a verdict in a list of statuses. A code is 0 if the pod fits the node, and
NO_NODE (-1) if the row has no node. A *NODE plugin* reads only the Node object. A *ROW plugin* also
reads the pods on the node, and a *CLUSTER plugin* reads anything
(`engine.framework.interface.Locality`). Only results of NODE and ROW plugins are cached.
"""
