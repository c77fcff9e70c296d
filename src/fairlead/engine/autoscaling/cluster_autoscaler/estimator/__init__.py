"""Estimates the number of new nodes of a group that the pending pods need."""
