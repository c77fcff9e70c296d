"""The pods of a controller: expectations, adoption and creation (upstream: controller_utils.go)."""
