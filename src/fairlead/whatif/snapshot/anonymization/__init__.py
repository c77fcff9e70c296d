"""Anonymised snapshots: other names, the same answers."""
