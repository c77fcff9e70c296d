"""Plans: cached plugin answers per shape and node, and which of them are stale."""
