"""The removal of nodes: taint, drain, delete."""
