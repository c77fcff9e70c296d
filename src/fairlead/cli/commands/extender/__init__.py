"""`fairlead extender`."""
