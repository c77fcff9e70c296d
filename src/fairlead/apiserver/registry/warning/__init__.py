"""Warnings about objects that were accepted.

Law: pure functions of the old and new object; they yield messages and change nothing.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""
