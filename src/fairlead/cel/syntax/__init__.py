"""Parses the text of an expression into a syntax tree, and expands macros."""
