"""Deployments: create ReplicaSets and roll them out (upstream: pkg/controller/deployment)."""
