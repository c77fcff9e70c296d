"""Replays recorded loops and timelines of Cluster Autoscaler in a simulated cluster."""
