"""VolumeBinding: a pod runs where its volumes are, or where they can be provisioned.

The result for a node depends on claims, volumes and nodes, never on placed pods. So the results are
valid for the whole scheduling cycle, including the dry runs of preemption.
upstream: plugins/volumebinding/{volume_binding,binder}.go
"""
