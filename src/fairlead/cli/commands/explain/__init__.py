"""`fairlead explain`."""
