"""Nodes for several planners: copies as new nodes, and the minimum number of nodes.

Law: nothing here places a pod.
"""
