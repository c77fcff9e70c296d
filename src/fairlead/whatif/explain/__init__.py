"""Explanations of a pod, PodGroup, workload, node, budget or PriorityClass of a snapshot."""
