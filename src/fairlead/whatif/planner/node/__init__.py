"""Nodes for several planners: copies as new nodes, and the minimum number of nodes.

This package does not place pods.
"""
