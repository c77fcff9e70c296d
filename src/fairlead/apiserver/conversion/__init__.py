"""Converts objects between the served version and the version in which they are handled.

upstream: pkg/apis/*/v1/conversion.go
"""
