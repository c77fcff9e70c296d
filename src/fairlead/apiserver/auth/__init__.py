"""Authentication, authorization, certificates, and the RBAC objects of a new cluster.

All functions are pure, except that keys, serial numbers of certificates and ECDSA signatures are
random. The current time (or a clock) and the request are arguments. A refusal is an `ApiError` in
upstream's words.
"""
