"""What the simulated kubelets of a local cluster write besides phases and conditions.

Container statuses, addresses and container events decide nothing; clients expect to see them.
"""
