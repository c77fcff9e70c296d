"""Tables: objects as kubectl prints them, one row each.

A printer is the columns of a kind and the cells of one of its objects. Printers read stored JSON,
at any state of completeness: a bookmark is printed as an object of which nothing is known.

upstream: pkg/printers/internalversion/printers.go
"""
