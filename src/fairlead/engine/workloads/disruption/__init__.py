"""PodDisruptionBudgets: keep their status current (upstream: pkg/controller/disruption)."""
