"""Provisioning: pending pods become NodeClaims."""
