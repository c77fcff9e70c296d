"""Structural schemas of custom resources, and how they are applied to objects.

upstream: apiextensions-apiserver/pkg/apiserver/schema
"""
