"""The simulated world: virtual time, objects in memory, and a script of external events.

Equal objects, scripts and seeds give equal runs, byte for byte.
"""
