"""Conversion between the served and the stored version of an object.

upstream: pkg/apis/*/v1/conversion.go
"""
