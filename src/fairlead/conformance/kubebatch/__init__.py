"""Sessions of kube-batch."""
