"""Table printers: the columns that `kubectl get` shows for each kind.

A printer contains the columns of a kind and computes the cells of one object. Fields of the object
may be missing: for a watch bookmark, the printer gets an object without fields.

upstream: pkg/printers/internalversion/printers.go
"""
