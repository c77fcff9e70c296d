"""Identifies the sender of a request: by bearer tokens and service account tokens."""
