"""VolumeBinding: a pod runs where its volumes are, or where they can be made.

Law: what is found out about nodes only depends on claims, volumes and nodes, never on pods, so it
is found out for all nodes at once and holds for the whole cycle, hypotheses included.
upstream: plugins/volumebinding/{volume_binding,binder}.go
"""
