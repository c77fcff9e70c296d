"""Remedies: the smallest change that would make a pod fit a node.

    change     one change of the pod, the node or another pod, as a text and as a value
    proposals  the changes to try for each rejecting plugin, smallest first
    selector_correction
               the probable typing errors in a pod's node selector, and the corrected pod
    search     runs the filters with proposals applied; returns the first proposal that works, or a
               short sequence of proposals

Every remedy that is shown was verified by running the plugins.
"""
