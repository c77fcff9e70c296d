"""Zones: disruption state of each zone and its rate-limited eviction queue."""
