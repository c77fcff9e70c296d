"""DynamicResources: pods that request devices through ResourceClaims.

A device that does not allow multiple allocations is allocated to at most one claim. The device
ledger (`engine.state.devices`) records each allocation before it is written to the API. So the
device is not allocated to another claim in the meantime.

upstream: pkg/scheduler/framework/plugins/dynamicresources and
staging/src/k8s.io/dynamic-resource-allocation
"""
