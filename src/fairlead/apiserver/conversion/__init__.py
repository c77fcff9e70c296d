"""Converts objects between the served and the stored version.

upstream: pkg/apis/*/v1/conversion.go
"""
