"""Explanations of a pod, PodGroup, workload, node or budget of a snapshot."""
