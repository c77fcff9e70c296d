"""Text formats: YAML as Kubernetes reads it, integers as Go reads them, patterns, field errors."""
