"""HTTP: serves an ApiServer on a socket.

This package makes no decisions. It converts bytes to requests, and responses to bytes. In
`apiserver`, only this package and the write-ahead log use clocks, sockets, threads and tasks.
"""
