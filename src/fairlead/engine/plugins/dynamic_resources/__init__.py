"""DynamicResources: pods that ask for devices through ResourceClaims.

Law: a device has at most one claim, whatever is still under way; what was decided is promised in
the ledger of `engine.state` before anything is written.
upstream: pkg/scheduler/framework/plugins/dynamicresources and
staging/src/k8s.io/dynamic-resource-allocation
"""
