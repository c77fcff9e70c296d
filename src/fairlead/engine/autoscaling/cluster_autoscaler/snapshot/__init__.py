"""A snapshot of the cluster for each loop, and simulations on it."""
