"""Schemas: the types and fields of built-in kinds, as data.

Law: pure tables and functions that follow them; no code is specific to one kind.
`tools/schema_table.py` makes `data/*.json.gz` from Kubernetes' published schemas; `api.facts` adds
the rules that those schemas omit.

`model` reads the tables, `decoder` converts a request's body into stored form. `gojson` reproduces
how Go reads JSON, and its error messages.
"""
