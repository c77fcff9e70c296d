"""Admission: what a cluster's policies make of a request after it was understood.

Law: a plugin sees one request and the objects in storage, and gives back the object it lets in or
raises `ApiError`; it writes nothing.
"""
