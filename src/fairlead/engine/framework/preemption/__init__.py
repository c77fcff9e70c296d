"""Preemption code that plugins share: budgets, nominations, policies, repeated displacements."""
