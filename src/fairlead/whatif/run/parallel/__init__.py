"""Runs in several processes, on several cores."""
