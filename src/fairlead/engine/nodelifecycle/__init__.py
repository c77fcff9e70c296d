"""What happens when nodes go quiet: health, zones, taints, evictions, pods without a node.

Law: everything here follows from objects and from how long ago they were heard of; nothing asks a
node, and work follows what changes, never the number of nodes.
"""
