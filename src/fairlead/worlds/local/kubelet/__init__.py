"""Details that simulated kubelets report in addition to phases and conditions.

Container statuses, addresses and container events affect no decision; clients expect to see them.
"""
