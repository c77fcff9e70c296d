"""HTTP: serves an ApiServer on a socket.

Law: this package makes no decisions. It converts bytes to requests and responses to bytes. Together
with the log on disk, it is the only part of the API server that uses clocks, sockets and tasks.
"""
