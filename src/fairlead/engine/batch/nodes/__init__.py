"""Finds the nodes that a task fits, by resources and scheduler plugins; chooses the best node."""
