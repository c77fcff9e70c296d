"""Instance types, their offerings, and columns over them."""
