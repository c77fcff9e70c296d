"""Details that simulated kubelets report in addition to phases and conditions.

These details are container statuses, addresses and container events. They affect no decision, but
clients expect them.
"""
