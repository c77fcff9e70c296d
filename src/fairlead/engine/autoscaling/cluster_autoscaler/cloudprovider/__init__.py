"""The cloud provider: the port through which node groups are resized, and a simulated provider."""
