"""Benchmarks: the workloads of upstream's scheduler_perf, and Fairlead's own workloads.

Upstream runs its workloads with a real API server. Fairlead runs them on the engine only.
"""
