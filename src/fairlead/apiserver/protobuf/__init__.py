"""Decodes protobuf request bodies, which kubectl and Kubernetes components send for built-in kinds.

A message is decoded with two tables: the schema of the type has the fields, and
`data/numbers.json.gz` (made by `tools/protobuf_table.py`) their numbers. Fields missing from these
tables are skipped, as protobuf requires.
"""
