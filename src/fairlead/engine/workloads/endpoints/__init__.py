"""Controllers of Endpoints and EndpointSlices.

upstream: pkg/controller/endpoint, endpointslice, endpointslicemirroring
"""
