"""Nodes that fail in a what-if or scenario: which ones, how, when and for how long."""
