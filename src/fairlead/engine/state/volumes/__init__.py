"""Volumes: which claims placed pods use, and volume decisions that the API does not show yet."""
