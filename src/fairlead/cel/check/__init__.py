"""Checks the types in a syntax tree, by the declarations of functions and variables."""
