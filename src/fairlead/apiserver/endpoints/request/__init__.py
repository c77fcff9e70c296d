"""Parses the path, the query parameters, the selectors and the body of a request."""
