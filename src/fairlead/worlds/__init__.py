"""Worlds: where commands are performed and stimuli come from. The only drivers.

Law: a world decides nothing about a cluster. It owns a clock and the objects, performs commands and
reports what happened; `driver` runs an engine in it.
"""
