"""StatefulSets: pods with stable names, in order (upstream: pkg/controller/statefulset)."""
