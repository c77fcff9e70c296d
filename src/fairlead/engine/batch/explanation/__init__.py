"""Explains why a group does not run, what would let it start, and when it could start."""
