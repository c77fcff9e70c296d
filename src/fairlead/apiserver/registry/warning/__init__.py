"""Warnings: what a client should know about an object that was accepted.

Law: pure functions of the old and new object; they yield texts and change nothing.

upstream: WarningsOnCreate and WarningsOnUpdate of pkg/registry/*/strategy.go
"""
