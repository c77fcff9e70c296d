"""Handlers of subresources, and of kinds that can only be posted (reviews, bindings).

upstream: pkg/registry/*/storage, pkg/registry/*/rest
"""
