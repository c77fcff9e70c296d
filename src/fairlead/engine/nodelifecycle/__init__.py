"""Node lifecycle: node health, zones, taints, evictions and pod garbage collection.

Law: every decision follows from API objects and from the time since the last heartbeat. Nothing
polls a node, and the cost follows what changes, not the number of nodes.
"""
