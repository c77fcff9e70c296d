"""Scale-up: grows node groups for the pods that fit no node."""
