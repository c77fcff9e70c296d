"""Custom resources: the kinds that CustomResourceDefinitions define.

`served_kind` builds one kind per served version of a definition. Each kind has a `CustomType`.
`schema.structural` parses its schema, `schema.pruning` drops unknown fields and sets defaults,
`cel` evaluates validation rules, and `printer_column` prints objects. `definition` validates the
CustomResourceDefinition itself, accepts its names and sets its conditions.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
