"""Texts: YAML as Kubernetes reads it, integers as in Go, RE2 patterns, field errors, name lists."""
