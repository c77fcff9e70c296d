"""Expanders: choose the best of the possible scale-ups."""
