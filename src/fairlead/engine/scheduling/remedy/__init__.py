"""Remedies: the smallest change that would make a pod fit a node.

    change     one change of the pod, the node or another pod, as a text and as a value
    proposals  per rejecting plugin, the changes worth trying, smallest first
    trial      runs the filters with the changes applied
    search     the first proposal that works, or a short sequence of them

Every remedy shown was verified by running the plugins.
"""
