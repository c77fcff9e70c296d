"""Admission plugins with upstream's names, one module per plugin."""
