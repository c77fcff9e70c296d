"""Which nodes can take a task: idle and releasing resources, filters, choice of the best node."""
