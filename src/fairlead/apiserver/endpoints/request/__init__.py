"""Parses what a client sends: path, query parameters and body."""
