"""Pods of a controller: expectations, adoption, creation (upstream: controller_utils.go)."""
