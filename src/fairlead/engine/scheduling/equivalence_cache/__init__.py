"""Caches that let pods with equal specs share the results of a scheduling cycle.

Each cache states which changes of the cluster make its entries invalid. The results are the same as
without the caches.
"""
