"""Warnings that accompany the responses to accepted requests.

The modules contain pure functions that read the old and new object and yield messages.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""
