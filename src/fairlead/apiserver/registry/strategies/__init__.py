"""The strategies of built-in kinds, one module or package for each API group.

A module has the rules of its kinds as well, unless `validation/<group>` has them.

upstream: pkg/registry/<group>/<resource>/strategy.go
"""
