"""The dry run of a preemption: on which nodes the pod would fit without which victims.

upstream: pkg/scheduler/framework/preemption/preemption.go: DryRunPreemption;
framework/plugins/defaultpreemption/default_preemption.go: SelectVictimsOnNode
"""
