"""Workload controllers: kube-controller-manager's controllers of pods, volumes and endpoints.

Every decision depends only on the existing pods, the creations and deletions in flight, and the
specification of the owner. The controllers of a served cluster and of a simulation differ in some
components. The module `environment` selects these components.
"""
