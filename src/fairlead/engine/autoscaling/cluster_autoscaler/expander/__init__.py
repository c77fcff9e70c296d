"""Expanders: choose the best expansion option."""
