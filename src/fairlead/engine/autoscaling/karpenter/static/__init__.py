"""Static NodePools, which keep a fixed number of nodes."""
