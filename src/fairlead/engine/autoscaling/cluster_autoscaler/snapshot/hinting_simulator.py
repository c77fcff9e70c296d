"""HintingSimulator: places pods; for each pod, first tries the node of its last placement.

upstream: simulator/scheduling/{hinting_simulator,hints,similar_pods}.go
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from msgspec import Struct, field

from fairlead.api.objects import Pod
from fairlead.engine.autoscaling.cluster_autoscaler.pod_kind import controller, is_daemon_set_pod
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.cluster_snapshot import ClusterSnapshot
from fairlead.engine.autoscaling.cluster_autoscaler.snapshot.pod_spec import same_pods
from fairlead.engine.state.pod_info import PodInfo

_SPECS_MAX: Final = 10


class HintingSimulator:
    """Places pods. The hint of a pod is the name of the node that the pod fitted last time."""

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        """Create a simulator that places pods in `snapshot`.

        To revert placements, the caller must fork `snapshot` before the simulator places pods.
        """
        self._snapshot = snapshot
        self._hints: dict[str, str] = {}
        self._old_hints: dict[str, str] = {}

    def drop_old_hints(self) -> None:
        """Drop the hints that were neither made nor used since the previous call."""
        self._old_hints, self._hints = self._hints, {}

    def try_schedule(
        self,
        pods: Iterable[PodInfo],
        among: Collection[str] | None = None,
        *,
        break_on_failure: bool = False,
    ) -> list[PodInfo]:
        """Place `pods` in order on the nodes `among` (None: all); return the placed pods.

        If `break_on_failure` is set, stop at the first pod that fits no node.
        """
        placed: list[PodInfo] = []
        failed = _FailedPods()
        for pod in pods:
            name = self._hinted(pod, among)
            if name is None and not failed.has_similar(pod.pod):
                name = self._snapshot.find_place(pod, among)
                if name is None:
                    failed.add(pod.pod)
            if name is not None:
                self._snapshot.add_pod(pod, name)
                self._hints[pod.id] = name
                placed.append(pod)
            elif break_on_failure:
                break
        return placed

    def _hinted(self, pod: PodInfo, among: Collection[str] | None) -> str | None:
        name = self._hints.get(pod.id) or self._old_hints.get(pod.id)
        if name is None or (among is not None and name not in among):
            return None
        if self._snapshot.rejection(pod, name) is not None:
            return None
        return name


class _FailedPods(Struct):
    """The pods that could not be placed, at most ten different pods of each controller."""

    _by_controller: dict[str, list[Pod]] = field(default_factory=dict)

    def has_similar(self, pod: Pod) -> bool:
        owner = controller(pod)
        if owner is None or is_daemon_set_pod(pod):
            return False
        return any(same_pods(pod, other) for other in self._by_controller.get(owner.uid, ()))

    def add(self, pod: Pod) -> None:
        owner = controller(pod)
        if owner is None or is_daemon_set_pod(pod):
            return
        pods = self._by_controller.setdefault(owner.uid, [])
        if len(pods) < _SPECS_MAX:
            pods.append(pod)
