"""Who sends a request: bearer tokens, service account tokens, impersonation headers."""
