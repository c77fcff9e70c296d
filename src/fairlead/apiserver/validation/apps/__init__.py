"""Workloads that keep pods running."""
