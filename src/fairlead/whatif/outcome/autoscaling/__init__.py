"""What autoscalers did in a run: nodes, replicas, and how long pods waited for room."""
