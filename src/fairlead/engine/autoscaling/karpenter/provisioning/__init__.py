"""Provisioning: creates NodeClaims for pending pods."""
