"""Finds the user who sends a request: known bearer tokens and service account tokens."""
