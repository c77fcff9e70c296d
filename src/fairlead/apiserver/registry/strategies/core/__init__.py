"""Strategies of the core group: Pods, Services, PersistentVolumeClaims and others.

upstream: pkg/registry/core
"""
