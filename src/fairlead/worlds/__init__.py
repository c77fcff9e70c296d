"""Worlds: perform the engine's commands, and report changes and outcomes back to it as stimuli.

A world makes no decisions about a cluster. It owns a clock and the objects, performs commands, and
reports their outcomes; `worlds.driver` runs an engine in a world.
"""
