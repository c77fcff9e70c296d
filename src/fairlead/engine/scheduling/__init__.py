"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

The engine calls `Scheduler` through the methods of `core.Controller`, and `Scheduler` returns only
commands.
"""
