"""Replays node lifecycle, taint eviction and pod garbage collection over time."""
