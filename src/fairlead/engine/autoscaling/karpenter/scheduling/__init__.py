"""The algebra of label requirements, and the toleration of taints."""
