"""InterPodAffinity: pods attract and repel each other within topology domains.

`affinity_terms` counts two kinds of placed pods: those that match the incoming pod's terms, and
those whose terms match the incoming pod. `filter` and `score` evaluate nodes by these counts.
upstream: plugins/interpodaffinity
"""
