"""Explanations of objects of a snapshot, such as pods, PodGroups, workloads, nodes and budgets."""
