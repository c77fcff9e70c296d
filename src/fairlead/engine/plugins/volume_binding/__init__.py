"""VolumeBinding: a pod runs where its volumes are, or where they can be provisioned.

Law: the results for nodes depend on claims, volumes and nodes, never on pods. So they are computed
for all nodes at once and hold for the whole cycle, hypotheses included.
upstream: plugins/volumebinding/{volume_binding,binder}.go
"""
