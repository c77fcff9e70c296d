"""kube-scheduler: the scheduling queue, scheduling and binding cycles, and preemption.

`Scheduler` implements the protocol `core.Controller`, whose methods the engine calls. `Scheduler`
does not write to the API server; it returns commands.
"""
