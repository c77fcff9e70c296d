"""A copy of all objects of one resource, kept up to date by list and watch.

upstream: client-go/tools/cache
"""
