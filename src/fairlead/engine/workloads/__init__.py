"""Workload controllers: kube-controller-manager's controllers of pods, volumes and endpoints.

Law: every decision follows from the pods that exist, from creations and deletions in flight, and
from the specification of their owner. What differs between worlds is chosen in `environment`.
"""
