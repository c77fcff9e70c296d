"""The documented JSON of results."""
