"""Shared by preemption and PostFilter plugins: candidates, budgets, nominations, recurrence."""
