"""Content negotiation, and Status objects for refused requests.

upstream: apiserver/pkg/endpoints/handlers/{negotiation,responsewriters}
"""
