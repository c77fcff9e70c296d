"""x-kubernetes-validations: CEL rules in the schemas of custom resources.

upstream: apiextensions-apiserver/pkg/apiserver/schema/cel
"""
