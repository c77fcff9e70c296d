"""A client of a real API server: kubeconfig, credentials, requests, and lists.

Knows `api` only. Nothing here decides about pods or nodes.
"""
