"""Pods of a controller: expectations, creation and deletion (upstream: controller_utils.go)."""
