"""Output on a terminal: width, colour, tables, sparklines, amounts and progress."""
