"""Replays recorded loops and timelines of Cluster Autoscaler in the world of the recording."""
