"""Output on a terminal: width and colour, fitted tables, sparklines, amounts and progress."""
