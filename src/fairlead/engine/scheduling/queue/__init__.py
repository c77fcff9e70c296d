"""The scheduling queue: active, backoff and unschedulable pods, and the events that move them.

To *wake* an unschedulable pod means to let it be scheduled again, because an event may have made
the pod schedulable. A PreEnqueue plugin *gates* the pods that it keeps out of the active queue.
"""
