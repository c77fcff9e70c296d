"""Subresources of pods: `binding` assigns a pod to a node; `eviction` deletes a pod if allowed."""
