"""Instance types, their offerings, and tables that select instance types quickly."""
