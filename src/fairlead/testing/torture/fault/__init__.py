"""Injects faults: a world, an extender, webhooks and a plugin that fail as a scenario says."""
