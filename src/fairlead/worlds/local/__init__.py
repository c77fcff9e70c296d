"""The local world: the engine behind an API server that kubectl and every client can talk to.

One process, one thread, one store: what clients write, controllers are told; what controllers
command is done to the same objects. Time is the machine's, or steered.
"""
