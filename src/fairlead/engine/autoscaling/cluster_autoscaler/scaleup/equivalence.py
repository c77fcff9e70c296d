"""PodEquivalenceGroup: pending pods that are equal for scheduling, represented by one pod.

upstream: core/scaleup/equivalence/groups.go
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import controller, is_daemon_set_pod
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.pod_spec import same_pods
from fairlead.engine.state.pod_info import PodInfo

_GROUPS_MAX: Final = 10


class PodEquivalenceGroup(Struct):
    """Equivalent pending pods, represented by the first pod.

    `accepted` contains the ids of node groups: the first pod fits the new nodes of these groups.
    `rejected` maps the ids of other node groups to the reasons why the first pod does not fit.
    `fits_skipped` is set if the first pod fits new nodes of a group that scale-up skipped.
    `fits_skipped` is computed only for pods that no group accepts, and only if the flag
    --scaleup-simulation-for-skipped-node-groups-enabled is set.
    """

    pods: list[PodInfo]
    accepted: list[str] = field(default_factory=list)
    rejected: dict[str, tuple[str, ...]] = field(default_factory=dict)
    fits_skipped: bool = False

    @property
    def first(self) -> PodInfo:
        """The pod that represents the group."""
        return self.pods[0]


def build_pod_groups(pods: Sequence[PodInfo]) -> list[PodEquivalenceGroup]:
    """Group `pods` by controller, labels and spec. Groups are in order of their first pods.

    Each DaemonSet pod and each pod without a controller gets a group of its own. Of the groups of
    one controller, only the first ten can have several pods. A pod of the controller that belongs
    to none of these ten also gets a group of its own.
    """
    groups: list[PodEquivalenceGroup] = []
    by_controller: dict[str, list[PodEquivalenceGroup]] = {}
    for pod in pods:
        owner = controller(pod.pod)
        if owner is None or is_daemon_set_pod(pod.pod):
            groups.append(PodEquivalenceGroup([pod]))
            continue
        known = by_controller.setdefault(owner.uid, [])
        same = next((one for one in known if same_pods(pod.pod, one.first.pod)), None)
        if same is not None:
            same.pods.append(pod)
            continue
        group = PodEquivalenceGroup([pod])
        groups.append(group)
        if len(known) < _GROUPS_MAX:
            known.append(group)
    return groups
