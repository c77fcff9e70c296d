"""Decisions of kube-scheduler about single pods, sequences of pods, and pods with volumes."""
