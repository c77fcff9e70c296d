"""Expanders: which of the possible scale-ups is best."""
