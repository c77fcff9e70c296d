"""Kubernetes objects from users' files: parsed, checked and indexed by name."""
