"""Serving: the Kubernetes API over a store, without a socket.

Law: pure. A request and the time go in, a response or a watch comes out; the shell in
`apiserver.http` moves bytes and reads the clock.
"""
