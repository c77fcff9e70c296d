"""Protobuf: bodies of clients that send no JSON.

kubectl's typed commands and Kubernetes' own components send protobuf and do not fall back; answers
may be JSON. A message is read with two tables: the schema of its type says what its fields are,
`data/numbers.json.gz` (made by `tools/protobuf_table.py`) what their numbers are. A field that the
tables do not know is passed over, as protobuf has it.
"""
