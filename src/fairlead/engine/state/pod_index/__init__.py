"""Indexes over pods: the rows of pods by namespace and labels, and the affinity terms of pods."""
