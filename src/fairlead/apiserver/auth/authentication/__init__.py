"""Finds the user who sends a request, by a known bearer token or a service account token."""
