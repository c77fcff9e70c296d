"""The batch plugins. Batch plugins decide about order, readiness, shares, victims and nodes.

A plugin reads the session and returns values. The plugin changes only its own data, for example the
sums of a queue.
"""
