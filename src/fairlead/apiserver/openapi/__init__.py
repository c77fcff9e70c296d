"""OpenAPI: the documents in which clients read what is served and what its fields mean.

Law: pure; documents follow from the registry and the schema tables alone. A document is written
when it is first asked for and kept until the registry changes.

`documents` answers requests; `definition` describes types, `operation` verbs, `group` the paths of
one version of a group.
"""
