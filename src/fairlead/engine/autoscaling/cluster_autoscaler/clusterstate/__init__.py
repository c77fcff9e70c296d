"""Tracks existing and requested nodes, and which node groups may grow."""
