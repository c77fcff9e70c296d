"""Scheduling of PodGroups: one cycle decides on all waiting pods of a group.

This needs the feature gate GenericWorkload.
"""
