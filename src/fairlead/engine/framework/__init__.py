"""The scheduling framework: extension points, and the runtime that calls the plugins.

A plugin gets a pod, a node (or columns of nodes) and a CycleState, and returns a value. No plugin
gets a client, a clock or the queue. Plugin authors import from `fairlead.plugin`.
"""
