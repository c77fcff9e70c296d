"""Scale-down: finds nodes that are not needed, and removes these nodes."""
