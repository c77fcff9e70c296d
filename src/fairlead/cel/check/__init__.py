"""Checks the types in a syntax tree against the declarations of functions and variables."""
