"""The disruption methods: one module for each, and the searches that consolidation uses."""
