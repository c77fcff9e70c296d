"""Authentication, authorization, certificates, and the RBAC objects of a new cluster.

Law: pure, except that `certificate_authority` generates keys. The current time and the request are
arguments. A refusal is an `ApiError` in upstream's words.
"""
