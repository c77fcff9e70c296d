"""Authentication: a known bearer token or a service account token identifies the user."""
