"""NodeVolumeLimits: limits the volumes of a CSI driver that are attached to a node.

Law: a volume counts once per node, by driver and handle, however many pods on the node use it.
upstream: plugins/nodevolumelimits/csi.go
"""
