"""Replays kube-scheduler's decisions over time, in a scripted cluster."""
