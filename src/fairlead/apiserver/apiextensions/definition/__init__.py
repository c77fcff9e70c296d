"""CustomResourceDefinitions: their validation, names and conditions.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation, pkg/controller
"""
