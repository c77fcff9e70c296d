"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

Law: no I/O. `Scheduler.handle` and `handle_deadline` are the only entry points; the only output is
commands.
"""
