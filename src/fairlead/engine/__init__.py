"""Composition of the controllers, and their configuration.

Law: the engine dispatches and concatenates; it decides nothing itself.
"""
