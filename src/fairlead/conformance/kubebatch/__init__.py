"""Replays sessions of kube-batch."""
