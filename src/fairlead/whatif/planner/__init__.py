"""Planners: the number of pods that fit, the nodes that can be removed, the nodes to buy.

    cluster_model      places pods with the scheduler; the placements can be reverted
    fit, fit_elastic   the number of pods that still fit (`fairlead fit`)
    node_drain         empties nodes (`fairlead drain-plan` and `upgrade-check`)
    consolidate        the nodes that can be removed (`fairlead consolidate`)
    rebalance          the pods to move (`fairlead rebalance`)
    cluster_size       the nodes to buy (`fairlead size`)
    node               copies of nodes; lower bounds on the number of nodes that are needed

Every placement in a plan is a decision of the scheduler's own cycle. Sums of resource amounts serve
only to rule out impossible plans. Searches are limited by an amount of work, not by time.
"""
