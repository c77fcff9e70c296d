"""Disruption: which nodes may be removed, why, how many at once, and their replacements."""
