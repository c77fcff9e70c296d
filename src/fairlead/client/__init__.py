"""A client of a real API server: kubeconfig, credentials, requests, and lists.

It imports only `api`, and makes no decisions about pods or nodes.
"""
