"""HTTP: the API server on a socket.

Law: nothing is decided here. Bytes become requests, answers become bytes; time, sockets and
tasks are this package's, and no other part of the API server's but its files'.
"""
