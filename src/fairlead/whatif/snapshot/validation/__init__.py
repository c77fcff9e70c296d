"""Checks before a run: unknown fields, missing namespaces and nodes, excessive sizes."""
