"""Rule and status of StatefulSets: pods with fixed names (upstream: pkg/controller/statefulset)."""
