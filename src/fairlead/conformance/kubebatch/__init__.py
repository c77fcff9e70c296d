"""Replays recorded sessions of kube-batch."""
