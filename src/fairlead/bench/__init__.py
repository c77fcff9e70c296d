"""Benchmarks: the workloads of upstream's scheduler_perf, and Fairlead's own workloads.

Upstream measures its workloads with a real API server. Fairlead measures them on the engine only,
without an API server. Each workload runs in its own process.
"""
