"""The algebra of label requirements, and taints."""
