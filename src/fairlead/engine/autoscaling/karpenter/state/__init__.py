"""The cluster as Karpenter sees it: NodeClaims joined with Nodes, pods by node, memory."""
