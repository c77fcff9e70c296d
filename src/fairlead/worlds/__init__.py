"""Worlds: perform the engine's commands and report changes back as stimuli.

Law: a world makes no decisions about a cluster. It owns a clock and the objects, performs commands
and reports the results; `worlds.driver` runs an engine in it.
"""
