"""Functions on nodes for several packages: taints, readiness, node selectors, kubelet behaviour."""
