"""Evictions from unhealthy nodes: taints nodes at a limited rate, and evicts pods by these taints."""
