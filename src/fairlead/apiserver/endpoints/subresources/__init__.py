"""Handlers of subresources, and of kinds that are only posted (reviews, bindings).

upstream: pkg/registry/*/storage, pkg/registry/*/rest
"""
