"""Batch scheduling: gangs of pods (jobs), the queues in which they wait, and fair shares.

Law: a session decides about all jobs at once on one snapshot of the cluster, and binds a gang as a
whole or not at all. Inside a session `Session.move` is the only writer.
"""
