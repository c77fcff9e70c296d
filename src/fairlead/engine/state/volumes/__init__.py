"""Volumes in the cluster state: their use by placed pods, and assumed volume bindings."""
