"""Which nodes can take a task: idle and releasing room, requests, filters, the best node."""
