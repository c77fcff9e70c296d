"""The plugins NodeResourcesFit and NodeResourcesBalancedAllocation (plugins/noderesources)."""
