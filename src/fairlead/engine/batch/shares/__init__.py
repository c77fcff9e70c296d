"""Shares of queues and jobs: dominant shares, deserved amounts and trees of queues."""
