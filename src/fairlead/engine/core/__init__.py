"""The grammar every layer speaks: stimuli in, commands out, outcomes as values, time as a number.

Law: nothing here decides anything about a cluster, and nothing here does I/O.
"""
