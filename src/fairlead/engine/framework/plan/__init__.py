"""Plans: plugin results cached per shape and node, with the rows to recompute."""
