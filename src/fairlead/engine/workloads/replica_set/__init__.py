"""Rule and status of ReplicaSets, ReplicationControllers (upstream: pkg/controller/replicaset)."""
