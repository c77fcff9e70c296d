"""The descheduler: determines the pods that one run of its strategies evicts.

    policy         the DeschedulerPolicy file
    cluster_view   the nodes and pods that the strategies examine
    evictor        the pods that may be evicted, and the limits
    strategy       the strategies that examine single pods
    spread         the strategies that even out duplicates and topology spread
    utilization    LowNodeUtilization and HighNodeUtilization
    run            one run of a policy

upstream: sigs.k8s.io/descheduler
"""
