"""How nodes go: taint, drain, delete."""
