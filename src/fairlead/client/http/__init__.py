"""Connections to an API server over HTTP: the pool for short requests, and sessions for streams."""
