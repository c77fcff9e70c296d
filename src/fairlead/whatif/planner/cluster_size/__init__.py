"""Sizing a cluster: the cheapest set of nodes that runs all pods (`fairlead size`).

    search             builds, checks and improves a set of nodes
    node_offer         the kinds of nodes that can be bought, with prices
    requirement        what any set of nodes must supply
    cost_bound         a price below which no set of nodes can meet the requirements
    image_rule         keeps pods on nodes on which their images run
    survival           the failures that the set of nodes must survive
    node_set           the sets of nodes whose simultaneous loss is tried
    size_option        reads the options of the command
    size_result        the result of the search
    size_answer        the answer as data

The search reports a set of nodes only after it has scheduled every pod on these nodes.
"""
