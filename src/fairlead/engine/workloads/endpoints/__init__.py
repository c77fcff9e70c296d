"""Endpoints and EndpointSlices of Services (upstream: pkg/controller/endpointslice)."""
