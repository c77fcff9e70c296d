"""InterPodAffinity: pods attract and repel each other within topology domains.

`affinity_terms` counts the pods that match the incoming pod's terms, and the placed pods whose
terms match the incoming pod. `filter` and `score` evaluate nodes by these counts.
upstream: plugins/interpodaffinity
"""
