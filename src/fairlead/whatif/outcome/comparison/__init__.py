"""Compares the outcomes of the runs with and without a change."""
