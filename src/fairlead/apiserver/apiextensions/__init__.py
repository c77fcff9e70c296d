"""Custom resources: the kinds that CustomResourceDefinitions define.

`served_kind` builds one kind per served version of a definition, with a printer for its objects.
Each kind has a `CustomType`. `schema.structural` parses its schema, `schema.pruning` drops unknown
fields and sets defaults, and `cel` evaluates validation rules. `definition` validates the
CustomResourceDefinition itself, accepts its names and sets its conditions.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
