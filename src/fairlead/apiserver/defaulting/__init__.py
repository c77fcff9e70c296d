"""Defaulting: sets the absent fields of an object.

All functions are pure. An object that already has all its defaults is returned unchanged.

The module `defaulter` sets all defaults. The module `simulation` sets only the defaults that a
simulated cluster needs.
"""
