"""Subresources of pods: `binding` assigns a pod to a node, `eviction` deletes it if allowed."""
