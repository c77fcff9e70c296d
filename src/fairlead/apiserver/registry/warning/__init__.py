"""Warnings that accompany the responses to accepted requests.

The modules contain pure functions of the old and new object, which yield messages.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""
