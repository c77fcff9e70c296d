"""Faults: the world, extenders, webhooks and plugins that fail as a scenario says."""
