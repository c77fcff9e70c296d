"""Kubernetes objects as typed read-only views, and functions over them.

This package contains only pure values and functions, which do not depend on clusters, schedulers or
worlds.
"""
