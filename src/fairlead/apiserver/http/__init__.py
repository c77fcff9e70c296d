"""HTTP: serves an ApiServer on a socket.

Law: this package makes no decisions. It converts bytes to requests and responses to bytes. Only
this package and the log on disk use clocks, sockets and tasks.
"""
