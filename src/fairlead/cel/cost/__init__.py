"""The cost of expressions: an estimate from their types, and a tracker at run time."""
