"""ResourceQuota: computes the usage of objects, and refuses requests that exceed a quota.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota, pkg/quota/v1
"""
