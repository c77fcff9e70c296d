"""Schemas: the types and fields of built-in kinds, as data.

Law: pure tables and walks over them; no code is specific to one kind. `tools/schema_table.py` makes
`data/*.json.gz` from Kubernetes' published schemas; the files in `data/facts` are written by hand.

`model` reads the tables, `decoder` converts a request's body into stored form, `facts` has what the
published schemas leave out. `gojson` reproduces how Go reads JSON, and its error messages.
"""
