"""Text formats: YAML as in Kubernetes, integers as in Go, RE2 patterns, field errors."""
