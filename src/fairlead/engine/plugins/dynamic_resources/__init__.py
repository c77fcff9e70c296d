"""DynamicResources: pods that request devices through ResourceClaims.

Law: a device that does not allow multiple allocations is allocated to at most one claim. Assumed
allocations that are not yet in the API count as well. Each allocation is recorded in
the device ledger (`engine.state.devices`) before it is written to the API.
upstream: pkg/scheduler/framework/plugins/dynamicresources and
staging/src/k8s.io/dynamic-resource-allocation
"""
