"""Allocatable and requested amounts of nodes, and the numbers of pods that workloads want."""
