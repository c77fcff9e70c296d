"""The cloud provider: the interface through which node groups are resized, and a simulation."""
