"""The pods of a controller: expectations and creation (upstream: controller_utils.go)."""
