"""Reads users' input: documents, durations, strict forms; errors name file and field."""
