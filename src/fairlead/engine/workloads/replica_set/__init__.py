"""ReplicaSets and ReplicationControllers (upstream: pkg/controller/replicaset)."""
