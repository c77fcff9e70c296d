"""The cluster as a loop sees it, and simulations on it."""
