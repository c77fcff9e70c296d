"""Compares the outcome of a run with a change with the outcome of the run without the change."""
