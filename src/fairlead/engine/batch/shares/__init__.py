"""Shares of queues and jobs: dominant shares, deserved amounts, hierarchical queues."""
