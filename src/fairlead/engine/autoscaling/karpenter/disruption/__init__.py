"""Disruption: which nodes may go, why, how many at once, and what replaces them."""
