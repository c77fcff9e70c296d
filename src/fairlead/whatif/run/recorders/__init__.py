"""Recorders: each listens to a run and collects one part of its outcome.

Law: a recorder never changes what happens in the run.
"""
