"""KubeSchedulerConfiguration, from decoded forms to what a scheduler is built from.

Law: pure; files are read where files may be read, so every world can use this.
upstream: pkg/scheduler/apis/config
"""
