"""`fairlead simulate`."""
