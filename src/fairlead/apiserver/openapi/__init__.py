"""OpenAPI v2 and v3 documents, for `kubectl explain`, `kubectl apply` and code generators.

upstream: k8s.io/kube-openapi/pkg/{builder3,handler3}, apiserver/pkg/endpoints/installer.go
"""
