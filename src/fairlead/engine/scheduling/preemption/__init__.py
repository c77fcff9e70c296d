"""Preemption: evicts pods of lower priority for a pod that fits no node.

    eligibility → candidates (dry run on nodes where evictions may help) → pick_one_node → execution

upstream: pkg/scheduler/framework/preemption/preemption.go and
framework/plugins/defaultpreemption/default_preemption.go
"""
