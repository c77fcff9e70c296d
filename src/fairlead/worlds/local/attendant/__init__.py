"""Attendants: what a cluster's smaller controllers do, at once, whenever something changes."""
