"""The namespaces, RBAC roles and RBAC bindings that every new cluster has.

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy
"""
