"""Validates pods and pod templates."""
