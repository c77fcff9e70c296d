"""InterPodAffinity: pods attract and repel each other within topology domains.

Upstream's plugins/interpodaffinity, by phase: `plugin` has the extension points, `own_term` counts
pods that match the incoming pod's terms, `existing_term` counts placed pods whose terms match the
incoming pod, and `filter` and `score` decide.
"""
