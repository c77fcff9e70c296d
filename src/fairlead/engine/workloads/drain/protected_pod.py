"""Pods that Karpenter does not evict when it drains a terminating node.

The drain waits until the pods with the annotation `karpenter.sh/do-not-disrupt: "true"` are gone.
Karpenter deletes such pods after the termination grace period of the NodeClaim. This period is
ignored here. A simulated Karpenter (`engine.autoscaling.karpenter.termination`) respects this
period.

upstream: sigs.k8s.io/karpenter pkg/controllers/node/termination/terminator/terminator.go:Drain
"""

from __future__ import annotations

from typing import Final

from fairlead.api.finalizer import TERMINATION
from fairlead.api.objects import Node, Pod

DO_NOT_DISRUPT: Final = "karpenter.sh/do-not-disrupt"


def is_drained_by_karpenter(node: Node) -> bool:
    """Return whether `node` is being deleted and has Karpenter's finalizer."""
    return bool(node.metadata.deletion_timestamp) and TERMINATION in node.metadata.finalizers


def protects_from_karpenter(pod: Pod) -> bool:
    """Return whether an annotation keeps Karpenter from evicting `pod`."""
    return pod.metadata.annotations.get(DO_NOT_DISRUPT) == "true"
