"""Ingresses, network policies, IP addresses and service CIDRs."""
