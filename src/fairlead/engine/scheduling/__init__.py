"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

Law: this package does no I/O. The engine calls the methods of `core.Controller` on `Scheduler`, and
its only output is commands.
"""
