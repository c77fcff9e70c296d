"""The cloud provider: the interface that resizes node groups, and a simulated provider."""
