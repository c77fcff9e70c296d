"""The simulated world: virtual time, objects in memory, and a script of external events.

Law: equal objects, scripts and seeds give equal runs, byte for byte.
"""
