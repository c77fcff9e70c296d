"""Whole jobs: gangs of pods, the queues they wait in, and the shares that are fair.

Law: a session decides about all jobs at once on one picture of the cluster, and binds a gang as a
whole or not at all. Inside a session `Session.move` is the only writer.
"""
