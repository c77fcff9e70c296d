"""What became of the nodes that were asked for, and which node groups may grow."""
