"""Tracks the fate of requested nodes, and which node groups may grow."""
