"""Upstream's scheduler benchmarks by name, run on the engine alone.

Upstream's figures include a real API server; Fairlead's do not.
"""
