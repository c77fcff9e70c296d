"""Benchmarks: the workloads of upstream's scheduler_perf, and Fairlead's own workloads.

Upstream measures its workloads with a real API server, Fairlead on the engine only.
"""
