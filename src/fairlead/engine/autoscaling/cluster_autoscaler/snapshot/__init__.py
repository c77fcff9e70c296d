"""The cluster snapshot of each loop, and simulations on it."""
