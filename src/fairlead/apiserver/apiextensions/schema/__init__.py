"""Structural schemas of custom resources, and what is done to objects by them.

upstream: apiextensions-apiserver/pkg/apiserver/schema
"""
