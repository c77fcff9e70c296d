"""Audit logs of kube-apiserver: the writes that they record, and the cluster after each write."""
