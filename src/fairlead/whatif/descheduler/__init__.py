"""The descheduler: which pods one run of its strategies evicts.

    policy         the DeschedulerPolicy file
    cluster_view   the nodes and pods that the strategies look at
    evictor        which pods may be evicted, and the limits
    strategy       the strategies that look at single pods
    spread         the strategies that even out duplicates and topology spread
    utilization    LowNodeUtilization and HighNodeUtilization
    run            one run of a policy

upstream: sigs.k8s.io/descheduler
"""
