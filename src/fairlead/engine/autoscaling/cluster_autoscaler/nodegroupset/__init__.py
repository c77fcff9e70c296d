"""Similar node groups, and how new nodes are balanced among them."""
