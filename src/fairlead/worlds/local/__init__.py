"""The local world: the engine behind an API server for kubectl and other clients.

The cluster has one process, one thread and one store. Clients and controllers change the same
objects. The clock is the machine's clock, or is controlled by a user.
"""
