"""Loads a dump: objects that another API server has stored. Most are decoded on demand."""
