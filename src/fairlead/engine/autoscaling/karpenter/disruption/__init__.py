"""Disruption: selects nodes to remove and their replacements, within budgets."""
