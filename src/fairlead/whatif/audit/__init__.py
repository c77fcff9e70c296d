"""Audit logs of kube-apiserver: reads the recorded writes and applies them to a cluster."""
