"""The RBAC roles, bindings and namespaces that every new cluster has.

upstream: plugin/pkg/auth/authorizer/rbac/bootstrappolicy
"""
