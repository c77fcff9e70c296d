"""Evictions from unhealthy nodes: rate-limited tainting, and eviction by NoExecute taints."""
