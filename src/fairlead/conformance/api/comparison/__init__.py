"""Comparing responses and printed output with recordings, under placeholders."""
