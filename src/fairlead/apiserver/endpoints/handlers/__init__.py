"""REST handlers, one module per verb.

upstream: apiserver/pkg/endpoints/handlers
"""
