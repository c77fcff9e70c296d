"""Table printers: the columns that `kubectl get` shows for each kind.

A printer contains the columns of a kind and computes the cells of one object. Printers read stored
JSON that may be incomplete: a watch bookmark is printed as an object without fields.

upstream: pkg/printers/internalversion/printers.go
"""
