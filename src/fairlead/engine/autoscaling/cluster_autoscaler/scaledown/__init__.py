"""Scale-down: which nodes are not needed, and how they go."""
