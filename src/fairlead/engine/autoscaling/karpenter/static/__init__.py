"""Static NodePools: a fixed number of nodes."""
