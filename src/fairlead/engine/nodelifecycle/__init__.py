"""Node lifecycle: node health, zones, taints, evictions and pod garbage collection.

Every decision depends only on API objects and the time since the last heartbeat. The
computing time depends on the number of changes, not on the number of nodes.
"""
