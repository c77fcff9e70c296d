"""Batch scheduling: gangs of pods (jobs), the queues in which they wait, and fair shares.

Law: a session decides about all jobs together, on one snapshot of the cluster. It binds all members
that a gang needs, or none of them. Inside a session, `Session.move` is the only writer.
"""
