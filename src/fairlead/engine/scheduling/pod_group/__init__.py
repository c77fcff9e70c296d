"""Scheduling of PodGroups: one cycle decides on all waiting pods of a group.

PodGroups are scheduled in this way only if the feature gate GenericWorkload is on.
"""
