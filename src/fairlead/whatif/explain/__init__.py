"""Explanations of one pod or one PodGroup against a snapshot."""
