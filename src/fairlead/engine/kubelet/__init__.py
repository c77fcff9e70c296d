"""Simulated nodes: what happens to a pod between its binding and its disappearance.

Law: a kubelet only acts on pods bound to its node, and a stopped one does nothing at all.
"""
