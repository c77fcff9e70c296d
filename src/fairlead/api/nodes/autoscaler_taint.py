"""The keys of the taints that node autoscalers set, and the key prefixes of startup taints.

upstream: cluster-autoscaler utils/taints/taints.go, karpenter pkg/apis/v1/taints.go
"""

from __future__ import annotations

from typing import Final

TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
"""Cluster Autoscaler is removing the node. The value is the time at which it began."""
DELETION_CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
"""Cluster Autoscaler may remove the node soon."""
DISRUPTED_TAINT: Final = "karpenter.sh/disrupted"
"""Karpenter is removing the node."""
UNREGISTERED_TAINT: Final = "karpenter.sh/unregistered"
"""Karpenter has not registered the new node yet."""
STARTUP_PREFIXES: Final = (
    "startup-taint.cluster-autoscaler.kubernetes.io/",
    "ignore-taint.cluster-autoscaler.kubernetes.io/",
)
"""For Cluster Autoscaler, nodes whose taints have these prefixes are still starting."""
