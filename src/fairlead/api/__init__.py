"""Kubernetes objects as typed read-only views, and functions over them.

Law: pure values and functions; nothing here depends on clusters, schedulers or worlds.
"""
