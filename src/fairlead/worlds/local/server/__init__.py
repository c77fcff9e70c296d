"""The local cluster as a process: event loop, sockets, clock and metrics endpoints."""
