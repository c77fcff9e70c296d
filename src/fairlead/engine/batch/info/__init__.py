"""The records of the job table: JobInfo, TaskInfo, QueueInfo and GroupInfo."""
