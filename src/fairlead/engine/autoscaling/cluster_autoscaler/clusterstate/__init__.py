"""Tracks what became of requested nodes, and which node groups may grow."""
