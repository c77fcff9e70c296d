"""Kubernetes objects from users' files and live clusters: parsed, checked and indexed by name."""
