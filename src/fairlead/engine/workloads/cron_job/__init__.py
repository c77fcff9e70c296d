"""The controller of CronJobs: creates Jobs on a schedule (upstream: pkg/controller/cronjob)."""
