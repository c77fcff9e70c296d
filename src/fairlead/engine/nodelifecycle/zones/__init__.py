"""Zones: the disruption state and the rate-limited eviction queue of each zone."""
