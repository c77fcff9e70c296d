"""The dry run of a preemption: finds, for each node, the victims without which the pod would fit.

upstream: pkg/scheduler/framework/preemption/preemption.go: DryRunPreemption;
framework/plugins/defaultpreemption/default_preemption.go: SelectVictimsOnNode
"""
