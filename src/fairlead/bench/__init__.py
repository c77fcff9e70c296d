"""Upstream's scheduler benchmarks by name, run on the engine only.

Upstream measures with a real API server. Fairlead measures without an API server.
"""
