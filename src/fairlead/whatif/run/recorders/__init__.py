"""Recorders: each recorder observes a run and collects one part of its outcome.

A recorder never changes the events of the run.
"""
