"""Rule and status of DaemonSets: a pod on each eligible node (upstream: pkg/controller/daemon)."""
