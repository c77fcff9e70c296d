"""Scheduling of PodGroups: all waiting pods of a group are decided in one cycle.

Only with the feature gate GenericWorkload.
"""
