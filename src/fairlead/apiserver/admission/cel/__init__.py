"""CEL for admission: variables that expressions of webhooks and policies can use.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/cel
"""
