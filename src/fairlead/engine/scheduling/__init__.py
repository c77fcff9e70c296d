"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

Law: this package does no I/O. Its only entry points are `Scheduler.handle` and `handle_deadline`,
and its only output is commands.
"""
