"""Adds taints to unhealthy nodes at a limited rate, and evicts pods from these nodes."""
