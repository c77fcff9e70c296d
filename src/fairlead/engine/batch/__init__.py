"""Batch scheduling: gangs of pods (jobs), the queues in which they wait, and fair shares.

A session decides about all jobs together, on one snapshot of the cluster. The session binds all
members that a gang needs, or none of them. Inside a session, only `Session.move` changes which
resources a task holds.

The terms are kube-batch's. A *task* is a pod as a member of a job. *Releasing* resources belong to
pods that are being deleted. A *pipelined* task has a node, but waits until pods that are being
deleted have released enough resources on this node.
"""
