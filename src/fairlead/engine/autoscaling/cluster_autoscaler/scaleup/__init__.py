"""Scale-up: which node groups grow for the pods that have no place."""
