"""The strategies of built-in kinds, one module or package for each API group.

A module also contains the validation rules of its kinds, unless they are in `validation/<group>`.

upstream: pkg/registry/<group>/<resource>/strategy.go
"""
