"""Objects that a new local cluster starts with."""
