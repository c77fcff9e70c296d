"""KubeSchedulerConfiguration: from the decoded file to a SchedulerConfig.

Law: pure; files are read elsewhere, so every world can use this package.
upstream: pkg/scheduler/apis/config
"""
