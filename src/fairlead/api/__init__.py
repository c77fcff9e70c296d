"""Kubernetes objects as typed read-only views with their own algebra.

Law: pure values and functions over them; nothing here knows of clusters, schedulers or worlds.
"""
