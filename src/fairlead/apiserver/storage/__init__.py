"""Storage: the newest version of every object, the log of changes, and their durable copy.

Law: no rules about objects here. Only the write-ahead log uses the disk.

upstream: apiserver/pkg/storage and etcd
"""
