"""Validates Jobs and CronJobs."""
