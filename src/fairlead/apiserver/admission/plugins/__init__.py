"""Admission plugins, one module each, under upstream's names."""
