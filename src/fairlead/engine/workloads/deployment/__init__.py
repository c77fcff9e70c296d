"""Creates and scales the ReplicaSets of Deployments (upstream: pkg/controller/deployment)."""
