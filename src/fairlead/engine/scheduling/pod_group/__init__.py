"""Scheduling of PodGroups: all waiting pods of a group are decided in one cycle.

This needs the feature gate GenericWorkload.
"""
