"""What the nodes of a cluster can hold, what is in use, and which pods the workloads want."""
