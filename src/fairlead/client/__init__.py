"""A client of a real API server: kubeconfig, credentials, requests, and lists.

This package imports only `api`, and makes no decisions about pods or nodes.
"""
