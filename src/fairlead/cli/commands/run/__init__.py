"""`fairlead run`."""
