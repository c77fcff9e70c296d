"""DaemonSets: one pod for each eligible node (upstream: pkg/controller/daemon)."""
