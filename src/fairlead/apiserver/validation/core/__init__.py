"""Kinds of the core group."""
