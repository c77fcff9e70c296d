"""Custom resources: kinds that users define, with types, rules and columns of their own.

A CustomResourceDefinition becomes kinds (`served`), one for each version, each with its type:
`structural` reads the schema, `shaping` drops what it does not know and fills in defaults,
`checking` and `rules` say what is wrong with an object, `columns` prints it. `definition` checks
and completes the definition itself.

upstream: staging/src/k8s.io/apiextensions-apiserver
"""
