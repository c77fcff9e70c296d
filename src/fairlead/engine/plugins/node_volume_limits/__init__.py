"""NodeVolumeLimits: limits the number of attached volumes per CSI driver and node.

A volume is identified by driver and handle. A volume counts once per node, even if several pods on
the node use it.

upstream: plugins/nodevolumelimits/csi.go
"""
