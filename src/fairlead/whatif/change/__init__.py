"""Changes to a cluster (delete, apply, scale, cordon, drain, fail) as scripted commands."""
