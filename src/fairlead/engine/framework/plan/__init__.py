"""Plans: plugin results cached per shape and node, and the rows that must be recomputed."""
