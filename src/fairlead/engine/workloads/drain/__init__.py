"""Controllers that cordon nodes and evict their pods, as `kubectl drain` does."""
