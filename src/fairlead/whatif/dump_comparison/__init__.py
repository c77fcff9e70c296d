"""Comparisons of the objects of two dumps, without a simulation."""
