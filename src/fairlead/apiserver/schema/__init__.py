"""Schemas: the types and fields of built-in kinds, as data.

No code is specific to one kind, except `union` and `gojson.internal_type`. `tools/schema_table.py`
generates `data/*.json.gz` from the schemas that Kubernetes publishes; `api.facts` adds the rules
that those schemas omit.

`model` reads the tables, and `decoder` converts the body of a request into the form in which
objects are stored. `gojson` reproduces how Go reads JSON, and Go's error messages.
"""
