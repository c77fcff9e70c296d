"""Worlds: perform the engine's commands and report changes back as stimuli.

Law: a world decides nothing about a cluster. It owns a clock and the objects, performs commands and
reports what happened; `worlds.driver` runs an engine in it.
"""
