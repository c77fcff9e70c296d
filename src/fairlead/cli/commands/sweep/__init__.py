"""`fairlead sweep`: one scenario with fields, seeds and failures varied."""
