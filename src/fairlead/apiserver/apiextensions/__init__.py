"""Custom resources: the kinds that CustomResourceDefinitions define.

`served_kind` builds one kind per served version of a definition. Each kind has a `CustomType`,
which decodes and validates its objects. `definition` handles the definition itself, and
`conversion` converts objects between its versions.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
