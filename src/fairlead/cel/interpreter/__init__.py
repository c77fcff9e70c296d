"""Evaluates syntax trees.

Each node of a tree becomes a closure. When the closure runs, it adds its cost to the cost tracker.
"""
