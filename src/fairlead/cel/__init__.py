"""Kubernetes' own functions for CEL expressions: rules of custom resources, selectors of devices.

`library` declares them all to the CEL implementation; the other modules say what they do. A value
that CEL has no type for is a map with one key that says what it is.

upstream: apiserver/pkg/cel/library
"""
