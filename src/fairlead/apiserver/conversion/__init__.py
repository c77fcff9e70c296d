"""Conversion between the version that is served and the version that is stored.

upstream: pkg/apis/*/v1/conversion.go
"""
