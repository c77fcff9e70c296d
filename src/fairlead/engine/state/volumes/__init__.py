"""Volumes in the state of the cluster: their use by nodes, and volumes assumed for pods."""
