"""The simulated world: virtual time, objects in memory, a script of what happens from outside.

Law: equal objects, scripts and seeds give equal runs, byte for byte.
"""
