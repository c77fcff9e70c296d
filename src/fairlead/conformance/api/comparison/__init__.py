"""Compares responses and printed output with recordings that contain placeholders."""
