"""Indexes over pods: the nodes of pods by namespace and labels, and the affinity terms of pods."""
