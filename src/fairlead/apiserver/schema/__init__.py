"""Schemas: the types and fields of built-in kinds, as data.

Law: pure tables and walks over them; no code is specific to one kind. `tools/schema_table.py` makes
`data/*.json.gz` from Kubernetes' published schemas; `api.facts` has what they leave out.

`model` reads the tables, `decoder` converts a request's body into stored form. `gojson` reproduces
how Go reads JSON, and its error messages.
"""
