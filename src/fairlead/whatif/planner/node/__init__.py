"""Shared code of the planners: node copies, devices of nodes, and minimum node counts.

This package does not place pods.
"""
