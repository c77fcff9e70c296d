"""DynamicResources: pods that request devices through ResourceClaims.

Law: a device is allocated to at most one claim, in-flight allocations included; every decision is
recorded in the ledger of `engine.state` before anything is written.
upstream: pkg/scheduler/framework/plugins/dynamicresources and
staging/src/k8s.io/dynamic-resource-allocation
"""
