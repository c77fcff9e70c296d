"""A client of a real API server: kubeconfig, requests, lists and watches, leader election.

This package imports only `api`, and makes no decisions about pods or nodes.
"""
