"""Validates the kinds of the core group."""
