"""KubeSchedulerConfiguration: converts the decoded file to a SchedulerConfig.

All functions are pure; the callers read the files.
upstream: pkg/scheduler/apis/config
"""
