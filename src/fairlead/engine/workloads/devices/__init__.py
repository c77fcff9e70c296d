"""Controllers for devices: ResourceClaims from templates, and evictions due to device taints."""
