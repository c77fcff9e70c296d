"""`fairlead whatif`."""
