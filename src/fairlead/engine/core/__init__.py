"""Stimulus, command, controller, status, instant: the types that every layer of the engine shares.

Nothing in this package decides anything about a cluster.
"""
