"""Controllers of Endpoints and EndpointSlices (upstream: pkg/controller/endpointslice)."""
