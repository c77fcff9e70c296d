"""Nodes as several planners see them: copies for new nodes, prices, and how few are enough.

Law: nothing here places a pod.
"""
