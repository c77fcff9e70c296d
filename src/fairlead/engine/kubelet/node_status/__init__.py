"""The reports of a simulated kubelet about its node: renewals of the Lease, and node conditions.

upstream: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus
"""
