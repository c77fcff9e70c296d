"""Devices of pods: ResourceClaims from templates, and evictions by device taints."""
