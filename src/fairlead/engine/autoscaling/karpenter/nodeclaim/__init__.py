"""Conditions, pod events and expiration of NodeClaims."""
