"""Anonymised snapshots: they contain other names, but lead to the same answers."""
