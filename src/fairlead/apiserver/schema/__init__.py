"""Schemas: what the fields of built-in kinds are, as data.

Law: pure tables and walks over them. The tables in `data` are made by `tools/schema_table.py` from
Kubernetes' published schemas; nothing here is about one kind.

`model` reads them, `decoding` brings a request's body into the form in which objects are stored,
`completion` adds what its author left out.
"""
