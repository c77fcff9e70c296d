"""is_control_plane: whether a node runs the control plane of the cluster.

The API server, etcd and the controllers are often static pods. A drain leaves static pods on their
node, so no plan looks for room for them. Even if a plan finds room for all other pods of a control
plane node, the node may still be needed.

upstream: cmd/kubeadm/app/constants/constants.go: LabelNodeRoleControlPlane
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node

CONTROL_PLANE: Final = "node-role.kubernetes.io/control-plane"
_MASTER: Final = "node-role.kubernetes.io/master"  # the label until Kubernetes 1.23


def is_control_plane(node: Node) -> bool:
    """Return whether `node` has the label that kubeadm and others give to control plane nodes."""
    return CONTROL_PLANE in node.metadata.labels or _MASTER in node.metadata.labels
