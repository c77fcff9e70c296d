"""The local world: the engine behind an API server that kubectl and every client can talk to.

One process, one thread, one store. Clients' writes reach the controllers, and controllers' commands
change the same objects. Time is the machine's, or is steered.
"""
