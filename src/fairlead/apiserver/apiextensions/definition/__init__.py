"""CustomResourceDefinition: strategy, validation, names, conditions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation, pkg/controller
"""
