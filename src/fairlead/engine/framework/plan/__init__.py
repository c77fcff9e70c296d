"""Plans: cached plugin results per shape and node, and which of them are stale."""
