"""Deletion: what deletes dependents and the content of namespaces, and what delays deletions."""
