"""Snapshots of running clusters: which resources are read, and how."""
