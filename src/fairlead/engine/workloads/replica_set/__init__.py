"""Rule and status of ReplicaSets and ReplicationControllers.

upstream: pkg/controller/replicaset
"""
