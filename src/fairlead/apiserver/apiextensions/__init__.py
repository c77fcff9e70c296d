"""Custom resources: kinds that CustomResourceDefinitions define.

A definition becomes one kind per served version (`served_kind`), each with its `CustomType`:
`schema.structural` parses the schema, `schema.pruning` drops unknown fields and fills in defaults,
`cel` evaluates validation rules, `printer_column` prints objects. `definition` validates the
CustomResourceDefinition itself, accepts its names and sets its conditions.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
