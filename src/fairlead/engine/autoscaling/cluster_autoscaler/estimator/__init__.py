"""Estimates how many new nodes of a group the pending pods need."""
