"""Scheduling extension points, and the runtime that asks the plugins.

Law: plugins get a pod, a node (or columns of nodes) and a CycleState, and answer with values. No
plugin gets a client, a clock or the queue. `fairlead.plugin` is the public face for plugin authors.
"""
