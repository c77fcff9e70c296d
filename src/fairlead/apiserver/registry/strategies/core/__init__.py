"""Strategies of the core group: what is specific to Services, PersistentVolumeClaims and others.

upstream: pkg/registry/core
"""
