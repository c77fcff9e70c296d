"""`fairlead sweep`: runs one scenario many times, with varied fields, seeds and failures."""
