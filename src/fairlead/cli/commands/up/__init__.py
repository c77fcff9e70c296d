"""`fairlead up`."""
