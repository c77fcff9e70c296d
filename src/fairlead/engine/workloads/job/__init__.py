"""Jobs: run pods to completion and count them (upstream: pkg/controller/job)."""
