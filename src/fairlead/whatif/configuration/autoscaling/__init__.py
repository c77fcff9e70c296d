"""The configuration of the node autoscalers: node groups, NodePools, instance types, limits."""
