"""Parses the path, the query parameters and the body of a request."""
