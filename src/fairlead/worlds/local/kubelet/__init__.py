"""Details that simulated kubelets report in addition to phases and conditions.

These details are container statuses, addresses and container events. These details affect no
decision, but clients expect them.
"""
