"""Evictions from unhealthy nodes: taints nodes at a limited rate, and evicts pods from them."""
