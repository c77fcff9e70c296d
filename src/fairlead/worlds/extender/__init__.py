"""The scheduler extender protocol: a client for configured extenders, and a server."""
