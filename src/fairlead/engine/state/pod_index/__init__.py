"""Indexes over pods: where pods of equal namespace and labels run, and matching affinity terms."""
