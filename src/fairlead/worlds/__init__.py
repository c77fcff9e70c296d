"""Worlds: where commands are performed and stimuli come from. The only drivers.

Law: a world decides nothing about a cluster. It owns a clock and the objects, performs what it is
told, and tells what happened; `drive` lets a controller live in it.
"""
