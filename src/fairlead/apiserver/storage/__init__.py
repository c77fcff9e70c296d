"""Storage: the newest version of every object, the log of changes, and their durable copy.

This package contains no rules about objects. Only the write-ahead log uses the disk.

upstream: apiserver/pkg/storage and etcd
"""
