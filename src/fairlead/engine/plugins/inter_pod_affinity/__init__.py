"""InterPodAffinity: pods attract and repel each other within topology domains.

Upstream's plugins/interpodaffinity, by phase: `plugin` has the extension points, `affinity_terms`
counts pods that match the incoming pod's terms and placed pods whose terms match the incoming pod,
and `filter` and `score` decide.
"""
