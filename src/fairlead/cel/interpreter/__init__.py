"""Evaluates syntax trees. Each node becomes a closure, which adds its cost to the cost tracker."""
