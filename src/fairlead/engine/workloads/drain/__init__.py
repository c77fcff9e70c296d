"""Drains: cordon nodes and evict their pods, as `kubectl drain` does."""
