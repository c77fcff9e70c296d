"""Upstream's scheduler benchmarks by name, run on the engine alone.

Upstream's results include a real API server. Fairlead's results do not.
"""
