"""Runs the pods of Jobs to completion and counts them (upstream: pkg/controller/job)."""
