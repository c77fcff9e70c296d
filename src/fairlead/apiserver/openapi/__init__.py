"""OpenAPI v2 and v3 documents, for `kubectl explain`, `kubectl apply` and code generators.

Documents are built from the served kinds and the schema tables on the first request.

upstream: k8s.io/kube-openapi/pkg/{builder3,handler3}, apiserver/pkg/endpoints/installer.go
"""
