"""Comparisons: the outcome of a run with a change against the outcome without it."""
