"""NodeVolumeLimits: no more volumes of a CSI driver on a node than it can attach.

Law: a volume is counted once per node, by driver and handle, however many pods there use it.
upstream: plugins/nodevolumelimits/csi.go
"""
