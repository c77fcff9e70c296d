"""Autoscaling: controllers that add nodes to the cluster and remove nodes.

The controllers decide. A cloud provider creates and deletes the instances.

cluster_autoscaler/    Cluster Autoscaler: grows and shrinks node groups
karpenter/             Karpenter: creates nodes for pending pods, replaces nodes with cheaper nodes
"""
