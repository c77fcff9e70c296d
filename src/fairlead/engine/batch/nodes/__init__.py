"""Finds the nodes that can take a task: idle and releasing resources, filters, the best node."""
