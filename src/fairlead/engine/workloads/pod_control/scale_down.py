"""The order in which surplus pods are deleted.

upstream: pkg/controller/controller_utils.go:ActivePodsWithRanks, ActivePods,
pkg/controller/replicaset/replica_set.go:getPodsToDelete
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from functools import cmp_to_key
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import condition, is_sidecar
from fairlead.api.text.integer import parse_int64
from fairlead.api.timestamp import parse_timestamp
from fairlead.engine.core.instant import Instant

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
PHASE_ORDER: Final = {"Pending": 0, "Unknown": 1, "Running": 2}

_COST: Final = re.compile(r"0|[1-9][0-9]*|-[0-9]+")


class _Candidate(Struct, frozen=True):
    """A pod with the values that determine its place in the order of deletion.

    An unknown instant is None.
    """

    pod: Pod
    rank: tuple[bool, int, bool, int, int]  # a smaller value is deleted first
    ready_at: Instant | None
    restarts: tuple[int, int]
    created_at: Instant | None


def pods_to_delete(
    pods: Collection[Pod], count: int, now: Instant, siblings: Iterable[Pod] = ()
) -> list[Pod]:
    """Return the `count` pods to delete when a ReplicaSet is scaled down, in the order of deletion.

    The number of pods on each node is counted over `siblings`, the pods of all ReplicaSets of the
    same Deployment. If `siblings` is empty, only `pods` are counted.
    """
    if count >= len(pods):
        return list(pods)  # upstream does not sort either if all pods are deleted
    neighbours = Counter(pod.spec.node_name for pod in (tuple(siblings) or pods))
    candidates = [_candidate(pod, neighbours[pod.spec.node_name]) for pod in pods]
    return _first(candidates, count, now)


def job_pods_to_delete(pods: Collection[Pod], count: int) -> list[Pod]:
    """Return the `count` pods to delete when a Job needs fewer pods, in the order of deletion.

    The number of pods on each node and the deletion costs are ignored.
    """
    candidates = [_candidate(pod, 0, ignore_cost=True) for pod in pods]
    return _first(candidates, count, None)


def is_ready(pod: Pod) -> bool:
    """Return whether the Ready condition of the pod is True."""
    # upstream: pkg/api/v1/pod/util.go:IsPodReady
    ready = condition(pod, "Ready")
    return ready is not None and ready.status == "True"


def deletion_cost(pod: Pod) -> int:
    """Return the pod-deletion-cost annotation as a number; 0 if it is not a 32-bit integer."""
    # upstream: pkg/apis/core/helper/helpers.go:GetDeletionCostFromPodAnnotations
    text = pod.metadata.annotations.get(DELETION_COST, "")
    cost = parse_int64(text) if _COST.fullmatch(text) else None
    return cost if cost is not None and -(2**31) <= cost < 2**31 else 0


def _first(candidates: list[_Candidate], count: int, now: Instant | None) -> list[Pod]:
    def order(left: _Candidate, right: _Candidate) -> int:
        return _compare(left, right, now)

    ranked = sorted(candidates, key=cmp_to_key(order))
    return [candidate.pod for candidate in ranked[:count]]


def _candidate(pod: Pod, neighbours: int, *, ignore_cost: bool = False) -> _Candidate:
    ready = condition(pod, "Ready")
    is_up = ready is not None and ready.status == "True"
    rank = (
        pod.spec.node_name != "",
        PHASE_ORDER.get(pod.status.phase, 0),
        is_up,
        0 if ignore_cost else deletion_cost(pod),
        -neighbours,
    )
    ready_at = _instant(ready.last_transition_time) if ready is not None and is_up else None
    return _Candidate(
        pod, rank, ready_at, _restarts(pod), _instant(pod.metadata.creation_timestamp)
    )


def _restarts(pod: Pod) -> tuple[int, int]:
    """Return the highest restart count of the containers, and the highest of the sidecars."""
    # upstream: pkg/controller/controller_utils.go:maxContainerRestarts
    sidecars = {one.name for one in pod.spec.init_containers if is_sidecar(one)}
    status = pod.status
    return (
        max((one.restart_count for one in status.container_statuses), default=0),
        max(
            (one.restart_count for one in status.init_container_statuses if one.name in sidecars),
            default=0,
        ),
    )


def _compare(one: _Candidate, other: _Candidate, now: Instant | None) -> int:
    if one.rank != other.rank:
        return -1 if one.rank < other.rank else 1
    if one.rank[2] and one.ready_at != other.ready_at:
        return _by_time(one, other, (one.ready_at, other.ready_at), now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created_at != other.created_at:
        return _by_time(one, other, (one.created_at, other.created_at), now)
    # Upstream's sort is not stable here; the name makes the order deterministic.
    return -1 if one.pod.metadata.name < other.pod.metadata.name else 1


def _by_time(
    one: _Candidate,
    other: _Candidate,
    times: tuple[Instant | None, Instant | None],
    now: Instant | None,
) -> int:
    """Return a negative number if `one` is deleted before `other`, otherwise a positive number.

    `times` are the times at which the two pods became ready, or at which they were created. A pod
    without a time is deleted first. If both have a time and `now` is None, the pod with the later
    time is deleted first. If `now` is set, the binary logarithms (rounded down) of the ages at
    `now` are compared. The pod with the lower logarithm is deleted first. The uid decides between
    equal logarithms.
    """
    first, second = times
    if first is None or second is None:
        return -1 if first is None else 1
    if now is None:
        return -1 if first > second else 1
    difference = _magnitude(now - first) - _magnitude(now - second)
    if difference == 0:
        return -1 if one.pod.metadata.uid < other.pod.metadata.uid else 1
    return difference


def _magnitude(age: int) -> int:
    """Return the binary logarithm of `age` (ns), rounded down, or -1 if `age` is not positive."""
    # upstream: pkg/controller/controller_utils.go:logarithmicRankDiff
    return age.bit_length() - 1 if age > 0 else -1


def _instant(text: str) -> Instant | None:
    return parse_timestamp(text) if text else None
