"""Defaulting: sets the absent fields of an object.

All functions are pure. An object that already has all its defaults is returned unchanged.

`defaulter` sets all defaults; `simulation` sets only those that a simulated cluster needs.
"""
