"""The local world: the engine behind an API server for kubectl and other clients.

One process, one thread, one store. Clients' writes reach the controllers, and controllers' commands
change the same objects. Time is the machine's, or is steered.
"""
