"""Structural schemas of custom resources: parsing, pruning, defaulting and validation by a schema.

upstream: apiextensions-apiserver/pkg/apiserver/schema
"""
