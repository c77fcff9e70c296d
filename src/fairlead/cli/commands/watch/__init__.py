"""`fairlead watch`."""
