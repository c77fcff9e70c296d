"""Taints and tolerations: finds the taints that a pod does not tolerate.

Tolerations with the operators Gt and Lt never match, because their feature gate is off by default
in 1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from fairlead.api.objects import DeviceTaint, DeviceToleration, Taint, Toleration

NO_SCHEDULE: Final = "NoSchedule"
PREFER_NO_SCHEDULE: Final = "PreferNoSchedule"
NO_EXECUTE: Final = "NoExecute"

OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
# The taint for a node that is shut down, as an argument of kubectl taint. If a node has it, its
# pods are deleted without its kubelet.
SHUT_DOWN: Final = f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute"

CONDITION_TAINTS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
        "cloud.google.com/impending-node-termination",
        "NodeWithImpairedVolumes",
    }
)
"""The keys of taints that controllers set while a node has a condition or is cordoned.

upstream: cluster-autoscaler/utils/taints/taints.go: NodeConditionTaints
"""


def tolerates(toleration: Toleration | DeviceToleration, taint: Taint | DeviceTaint) -> bool:
    """Return True if `toleration` matches `taint`; tolerationSeconds is ignored.

    An empty effect matches every effect, and an empty key matches every key. An empty operator
    means Equal.
    """
    # upstream: staging/src/k8s.io/api/core/v1/toleration.go:ToleratesTaint,
    # for devices ToleratesTaint of staging/src/k8s.io/dynamic-resource-allocation/resourceclaim
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "" | "Equal":
            return toleration.value == taint.value
        case "Exists":
            return True
        case _:
            return False


def taint_text(taint: Taint) -> str:
    """Return `key=value:Effect`, or `key:Effect` if the taint has no value."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    """Return True if any of `tolerations` matches `taint`."""
    return any(tolerates(toleration, taint) for toleration in tolerations)


def find_untolerated(
    taints: Iterable[Taint], tolerations: Collection[Toleration], effects: tuple[str, ...]
) -> Taint | None:
    """Return the first untolerated taint whose effect is one of `effects`, or None."""
    # upstream: component-helpers/scheduling/corev1/helpers.go:FindMatchingUntoleratedTaint
    for taint in taints:
        if taint.effect in effects and not is_tolerated(taint, tolerations):
            return taint
    return None


def count_intolerable_prefer_no_schedule(
    taints: Iterable[Taint], tolerations: Iterable[Toleration]
) -> int:
    """Return the number of PreferNoSchedule taints that are not tolerated."""
    # upstream: pkg/scheduler/framework/plugins/tainttoleration/taint_toleration.go:
    # getAllTolerationPreferNoSchedule, countIntolerableTaintsPreferNoSchedule
    considered = [one for one in tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]
    return sum(
        taint.effect == PREFER_NO_SCHEDULE and not is_tolerated(taint, considered)
        for taint in taints
    )
