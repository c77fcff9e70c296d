"""JobInfo, TaskInfo, QueueInfo and GroupInfo: what a session knows about jobs and queues."""
