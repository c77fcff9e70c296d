"""Nodes that were starting, expected or leaving when the dump was taken."""
