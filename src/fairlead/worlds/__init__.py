"""Worlds perform an engine's commands, and pass changes and outcomes to the engine as stimuli.

A world makes no decisions about a cluster. A world owns a clock and the objects, performs commands,
and reports their outcomes; `worlds.driver` runs an engine in a world.
"""
