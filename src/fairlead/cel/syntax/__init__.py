"""Parses the text of an expression to a syntax tree, and expands macros."""
