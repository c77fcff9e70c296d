"""The process that serves a local cluster: event loop, sockets, clock and metrics endpoints."""
