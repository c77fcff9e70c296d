"""Upstream's scheduler benchmarks by name, engine-only.

Upstream's figures include a real API server; ours are the engine's alone, and say so.
"""
