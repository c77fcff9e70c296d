"""Batch configuration files, and what they select: rules, defects, extensions."""
