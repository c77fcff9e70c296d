"""Custom resources: the kinds that CustomResourceDefinitions define.

`served_kind` builds one kind per served version of a definition. Each kind has a `CustomType`,
which decodes and validates its objects. `definition` validates definitions, and sets their names
and conditions. `conversion` converts custom resources between the versions of a definition.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
