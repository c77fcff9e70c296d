"""Autoscaling: controllers that add nodes to the cluster and take them away.

They decide; a provider (a port) creates and deletes instances.
"""
