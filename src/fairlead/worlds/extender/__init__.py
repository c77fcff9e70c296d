"""Extenders on the wire: asking those that a scheduler is configured with, and being one."""
