"""The disruption methods, one module for each, and helpers of the consolidation searches."""
