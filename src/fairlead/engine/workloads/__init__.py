"""Workload controllers: kube-controller-manager's controllers of pods, volumes and endpoints.

Every decision depends only on the existing pods, the creations and deletions in flight, and the
specification of the owner. `environment` selects the component variants that differ between a
served cluster and a simulation.
"""
