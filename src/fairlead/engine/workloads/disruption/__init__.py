"""The controller of PodDisruptionBudgets and their status (upstream: pkg/controller/disruption)."""
