"""What a simulated kubelet reports about its node: renewals of the Lease, and node conditions.

upstream: pkg/kubelet/kubelet_node_status.go, pkg/kubelet/nodestatus
"""
