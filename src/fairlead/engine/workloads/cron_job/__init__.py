"""CronJobs: create Jobs on a schedule (upstream: pkg/controller/cronjob)."""
