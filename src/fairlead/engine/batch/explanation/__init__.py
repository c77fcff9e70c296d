"""Explains why a group does not run, which changes would let it start, and when it could start."""
