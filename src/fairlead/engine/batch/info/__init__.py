"""JobInfo, TaskInfo, QueueInfo and GroupInfo: the job table's records."""
