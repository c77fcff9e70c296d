"""Converts objects between the served and the internal version.

upstream: pkg/apis/*/v1/conversion.go
"""
