"""KubeSchedulerConfiguration: converts the decoded file to a SchedulerConfig.

Law: all functions are pure. Files are read elsewhere, so every world can use this package.
upstream: pkg/scheduler/apis/config
"""
