"""Served: what a server that others write to does to objects besides, kind by kind.

A simulation's store has its own ways to make objects complete; here is what clients of an API
server rely on: addresses of services, selectors of jobs, zero values of status.

Law: pure; other objects are only read.
"""
