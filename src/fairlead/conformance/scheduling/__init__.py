"""Replays decisions of kube-scheduler about single pods, sequences of pods, and volumes."""
