"""ResourceQuota: computes the usage of objects, and refuses requests over the limit.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota, pkg/quota/v1
"""
