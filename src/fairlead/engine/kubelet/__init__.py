"""Simulated kubelets: node heartbeats, and pods from their binding to their removal.

A kubelet acts only on pods bound to its node, and a stopped kubelet does nothing.
"""
