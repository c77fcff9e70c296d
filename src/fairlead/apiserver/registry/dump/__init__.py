"""Loads the objects of a dump, which another API server has stored; most are decoded on demand."""
