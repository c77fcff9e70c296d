"""Sizing a cluster: the cheapest set of nodes that runs everything (`fairlead size`).

    search             builds, checks and improves a set of nodes
    node_offer         the kinds of nodes to choose from, with prices
    cost_bound         a price below which no set of nodes can hold the pods
    size_option        reads the options of the command
    size_answer        the answer as data

Law: the search never reports a set of nodes on which it has not scheduled every pod.
"""
