"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

Law: sans-IO. `Scheduler.handle` and `handle_deadline` are the only entry points, and commands the
only output.
"""
