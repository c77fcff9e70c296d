"""Code shared by preemption and PostFilter plugins: budgets, nominations, policies, recurrence."""
