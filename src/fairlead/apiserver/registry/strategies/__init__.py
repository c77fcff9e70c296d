"""The strategies of built-in kinds, one module or package for each API group.

upstream: pkg/registry/<group>/<resource>/strategy.go
"""
