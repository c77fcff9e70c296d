"""How controllers' events become Event objects: counted, aggregated, and removed after an hour."""
