"""The batch plugins. Batch plugins decide about order, readiness, shares, victims and nodes.

A plugin reads the session and returns values. It changes only its own data, for
example the sums of a queue.
"""
