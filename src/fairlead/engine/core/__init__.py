"""Stimulus, command, controller, status, instant: the types that every layer of the engine shares.

Law: nothing here decides anything about a cluster, and nothing here does I/O.
"""
