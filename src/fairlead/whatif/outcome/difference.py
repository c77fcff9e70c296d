"""Difference: the effect of a change, as the run with it minus the run without it.

Pods are compared by the key of their first incarnation. A pod displaced from the same node in both
runs is no difference; a pod placed on different nodes has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import TypeVar

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome.run_outcome import (
    Displaced,
    Evicted,
    PdbBreach,
    PodEnd,
    Preempted,
    RunOutcome,
)

AnyDisplaced = TypeVar("AnyDisplaced", bound=Displaced)


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that ends on `target` instead of `origin`."""

    pod: PodEnd
    origin: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Everything that happens with the change but not without it.

    `placed` pods have a node only with the change. `removed` pods were deleted and not replaced,
    including those that a finalizer still holds. `updated` pods run on the same node, but were
    created anew or request other amounts. `reallocated` are the resources whose requested total
    changes. `displaced` pods, each listed once, lost the node they would have had, whether or not
    they got another. `quiet` counts additional pods on failed nodes. `recovered_after` is the time
    from the change until the last affected pod ran again; None if some still wait, no longer exist,
    or are down with their nodes.
    """

    placed: tuple[PodEnd, ...]
    moved: tuple[Move, ...]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    pending: tuple[PodEnd, ...]
    removed: tuple[PodEnd, ...]
    updated: tuple[PodEnd, ...]
    reallocated: tuple[str, ...]
    pdb_breaches: tuple[PdbBreach, ...]
    displaced: tuple[PodEnd, ...]
    quiet: int
    recovered_after: DurationNs | None

    @property
    def is_empty(self) -> bool:
        """Whether the same pods run and wait, on the same nodes and with the same requests."""
        return not (
            self.placed
            or self.moved
            or self.preempted
            or self.evicted
            or self.pending
            or self.removed
            or self.updated
            or self.reallocated
            or self.pdb_breaches
            or self.quiet
        )


def difference(without: RunOutcome, changed: RunOutcome) -> Difference:
    """`changed` minus `without`."""
    pending = tuple(pod for pod in changed.pending() if not _is_pending(without, pod.key))
    placed = tuple(pod for pod in changed.placed() if _has_no_node(without, pod.key))
    moved = tuple(_moves(without, changed))
    preempted = _additional(changed.preempted, without.preempted)
    evicted = _additional(changed.evicted, without.evicted)
    displaced = {one.pod.key for one in (*preempted, *evicted)}
    removed = tuple(
        pod
        for key, pod in without.pods.items()
        if not pod.is_completed and _is_removed(pod, changed.pods.get(key), displaced)
    )
    lost = [
        *(one.pod for one in (*preempted, *evicted)),
        *(move.pod for move in moved),
        *(pod for pod in pending if not _has_no_node(without, pod.key)),
        *(pod for pod in removed if pod.node not in changed.node_names),
    ]
    concerned = {pod.key: pod for pod in (*lost, *placed)}
    return Difference(
        placed=placed,
        moved=moved,
        preempted=preempted,
        evicted=evicted,
        pending=pending,
        removed=removed,
        updated=tuple(
            pod
            for pod in changed.placed()
            if pod.key not in displaced and _is_updated(without.pods.get(pod.key), pod)
        ),
        reallocated=_reallocated(without, changed),
        pdb_breaches=_additional_breaches(without, changed),
        displaced=tuple({pod.key: pod for pod in lost}.values()),
        quiet=_pods_on_failed_nodes(without, changed),
        recovered_after=None
        if pending or _has_lost_pods(without, changed)
        else _recovered_after(changed, concerned),
    )


def _is_removed(before: PodEnd, after: PodEnd | None, displaced: Collection[str]) -> bool:
    """Whether `before` was deleted; a pod that was displaced and is still held counts as that."""
    if after is None:
        return True
    return after.is_terminating and not before.is_terminating and after.key not in displaced


def _is_updated(before: PodEnd | None, after: PodEnd) -> bool:
    """Whether the pod runs on the same node in both runs, but anew or with other requests."""
    if before is None or not before.is_placed or before.node != after.node:
        return False
    return before.is_initial > after.is_initial or before.requests != after.requests


def _reallocated(without: RunOutcome, changed: RunOutcome) -> tuple[str, ...]:
    """The resources of which the pods request another amount in total, in the order of tables."""
    before = {one.resource: one.requested for one in without.allocations}
    return tuple(
        one.resource for one in changed.allocations if one.requested != before.get(one.resource, 0)
    )


def _pods_on_failed_nodes(without: RunOutcome, changed: RunOutcome) -> int:
    """The number of additional pods on failed nodes."""
    known = 0 if without.outage is None else without.outage.concerned
    return 0 if changed.outage is None else max(changed.outage.concerned - known, 0)


def _has_lost_pods(without: RunOutcome, changed: RunOutcome) -> bool:
    """Whether pods are lost that run without the change."""
    known = {one.pod for one in without.outage.lost} if without.outage else set()
    return changed.outage is not None and any(one.pod not in known for one in changed.outage.lost)


def _is_pending(outcome: RunOutcome, key: str) -> bool:
    pod = outcome.pods.get(key)
    return pod is not None and pod.is_pending


def _has_no_node(outcome: RunOutcome, key: str) -> bool:
    pod = outcome.pods.get(key)
    return pod is None or pod.is_pending


def _moves(without: RunOutcome, changed: RunOutcome) -> Iterable[Move]:
    for pod in changed.placed():
        before = without.pods.get(pod.key)
        if before is not None and before.is_placed and before.node != pod.node:
            yield Move(pod, before.node, pod.node)


def _additional(
    changed: Iterable[AnyDisplaced], without: Iterable[AnyDisplaced]
) -> tuple[AnyDisplaced, ...]:
    """The entries of `changed` that are not in `without`, compared by pod and node."""
    known = Counter((one.pod.key, one.node) for one in without)
    additional = []
    for one in changed:
        key = (one.pod.key, one.node)
        if known[key] > 0:
            known[key] -= 1
        else:
            additional.append(one)
    return tuple(additional)


def _additional_breaches(without: RunOutcome, changed: RunOutcome) -> tuple[PdbBreach, ...]:
    known = Counter((one.pdb, one.pod) for one in without.pdb_breaches)
    additional = []
    for one in changed.pdb_breaches:
        if known[(one.pdb, one.pod)] > 0:
            known[(one.pdb, one.pod)] -= 1
        else:
            additional.append(one)
    return tuple(additional)


def _recovered_after(changed: RunOutcome, concerned: Iterable[str]) -> DurationNs | None:
    """When the last pod of `concerned` started to run; None if one is not running."""
    latest = 0
    for key in concerned:
        pod = changed.pods.get(key)
        if pod is not None and pod.is_completed:
            continue
        if pod is None or pod.started_at is None:
            return None
        latest = max(latest, changed.after_start(pod.started_at))
    if changed.outage is not None and changed.outage.last_back_at is not None:
        latest = max(latest, changed.after_start(changed.outage.last_back_at))
    return latest


def moves_within(outcome: RunOutcome) -> list[Move]:
    """The pods that a single run displaced and placed on another node, by name."""
    moves: dict[str, Move] = {}
    for one in (*outcome.preempted, *outcome.evicted):
        end = outcome.pods.get(one.pod.key)
        if end is not None and end.is_placed and end.key not in moves:
            moves[end.key] = Move(end, one.node, end.node)
    return [moves[key] for key in sorted(moves) if moves[key].origin != moves[key].target]
