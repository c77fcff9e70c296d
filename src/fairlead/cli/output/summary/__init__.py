"""The sections of a summary, one module for each subject, and the summary of a simulation.

The answer of a what-if contains some of the sections, too.
"""
