"""OpenAPI: what is served, described for `kubectl explain`, `kubectl apply` and code generators.

Documents are made from the registry and the schema tables when somebody first asks for them.

upstream: k8s.io/kube-openapi/pkg/{builder3,handler3}, apiserver/pkg/endpoints/installer.go
"""
