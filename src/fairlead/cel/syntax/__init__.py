"""Reads the text of an expression as a syntax tree; macros are expanded on the way."""
