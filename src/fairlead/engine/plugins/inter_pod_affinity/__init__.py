"""InterPodAffinity: pods attract and repel each other within topology domains.

Upstream's plugins/interpodaffinity, by phase: `plugin` is what the framework asks, `own_term`
counts for the incoming pod's terms and `existing_term` for those of placed pods, `filtering` and
`scoring` decide.
"""
