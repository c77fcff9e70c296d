"""Identifies the user who sends a request, by known bearer tokens and by service account tokens."""
