"""Kubernetes objects as typed read-only views, and functions over them.

This package contains only immutable values and pure functions. None of them needs a cluster, a
scheduler or a simulation.
"""
