"""Preemption code that plugins share: budgets, nominations and policies."""
