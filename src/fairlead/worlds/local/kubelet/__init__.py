"""Details that simulated kubelets report in addition to phases and conditions.

The details are container statuses, addresses and container events. No decision depends on these
details, but clients expect them.
"""
