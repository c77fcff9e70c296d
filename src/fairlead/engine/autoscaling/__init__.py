"""Autoscaling: controllers that add nodes to the cluster and remove them.

They decide; a provider (a port) creates and deletes instances.

cluster_autoscaler/    Cluster Autoscaler: node groups grow and shrink
karpenter/             Karpenter: nodes made for pending pods, disrupted when others are cheaper
"""
