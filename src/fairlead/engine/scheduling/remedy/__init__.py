"""Why not that node, and what would have to change: the smallest change that makes it fit.

    change     one thing done to the pod, the node or another pod, in words and as a value
    proposals  per rejecting plugin, the changes worth trying, smallest first
    trial      the filters asked again with the changes made
    search     the first proposal that works; where none does alone, a short chain

Nothing is believed that was not tried: every remedy shown has been verified by asking the plugins.
"""
