"""Nodes that no plan drains: virtual nodes, and nodes that are being deleted.

A virtual node has no machine of its own to upgrade. A Fargate node belongs to one pod and ends with
this pod. A virtual kubelet runs in a pod of the cluster.
"""

from __future__ import annotations

from typing import Final

from fairlead.api.objects import Node

_COMPUTE_TYPE: Final = "eks.amazonaws.com/compute-type"
_FARGATE: Final = "fargate"
_VIRTUAL: Final = {
    # https://docs.aws.amazon.com/eks/latest/userguide/fargate.html
    _COMPUTE_TYPE: (_FARGATE, "a Fargate node ends with its pod"),
    # upstream: virtual-kubelet node/nodeutil/controller.go
    "type": ("virtual-kubelet", "a virtual node has no machine of its own"),
}


def drain_exemption(node: Node) -> str:
    """Return why no plan drains `node`; "" if plans may drain it."""
    return virtual_words(node) or deletion_words(node)


def is_fargate(node: Node) -> bool:
    """Return whether `node` is a Fargate node, which runs a single pod."""
    return node.metadata.labels.get(_COMPUTE_TYPE) == _FARGATE


def virtual_words(node: Node) -> str:
    """Return why `node`, a virtual node, has no machine to drain; "" if it is not virtual."""
    labels = node.metadata.labels
    return next((why for key, (value, why) in _VIRTUAL.items() if labels.get(key) == value), "")


def deletion_words(node: Node) -> str:
    """Return words that say that `node` is being deleted, with its finalizers; "" if it is not."""
    meta = node.metadata
    if not meta.deletion_timestamp:
        return ""
    waits = f", and waits for finalizer {' and '.join(meta.finalizers)}" if meta.finalizers else ""
    return f"it is being deleted{waits}"
