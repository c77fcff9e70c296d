"""Karpenter's view of the cluster: NodeClaims joined with Nodes, and pods by node."""
