"""HTTP: serves an ApiServer on a socket.

Law: no decisions here. Bytes become requests, answers become bytes. Together with the log on disk,
this is the only part of the API server that uses clocks, sockets and tasks.
"""
