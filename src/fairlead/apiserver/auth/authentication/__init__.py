"""Identifies the user who sends a request, by bearer tokens and service account tokens."""
