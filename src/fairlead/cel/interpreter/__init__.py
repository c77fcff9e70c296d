"""Evaluates syntax trees. Nodes become closures, which charge the cost tracker as they run."""
