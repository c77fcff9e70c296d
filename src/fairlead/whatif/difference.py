"""Difference: what a change did, as the run with it minus the run without it.

Pods are compared under their original's name. A pod that is displaced in both runs from the same
node is no difference; one that is placed in both, on different nodes, has moved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from fairlead.engine.core.instant import DurationNs
from fairlead.whatif.outcome import Displaced, Evicted, Outcome, PdbBreach, PodEnd, Preempted

AnyDisplaced = TypeVar("AnyDisplaced", bound=Displaced)


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that ends on another node than it would have."""

    pod: PodEnd
    origin: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What is so with the change and was not so without it.

    `placed` pods have a node and would have none, or would not exist; `removed` pods had a node
    or waited, and are not there any more. `displaced` pods, each once, lost the node they would
    have had, whatever became of them. `quiet` counts pods on nodes that went quiet.
    `recovered_after` is when, after the change, the last pod concerned ran again; None where some
    still wait, are gone for good, or are down with their nodes.
    """

    placed: tuple[PodEnd, ...]
    moved: tuple[Move, ...]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    pending: tuple[PodEnd, ...]
    removed: tuple[PodEnd, ...]
    pdb_breaches: tuple[PdbBreach, ...]
    displaced: tuple[PodEnd, ...]
    quiet: int
    recovered_after: DurationNs | None

    @property
    def is_empty(self) -> bool:
        """Whether the change made no difference to any pod."""
        return not (
            self.placed
            or self.moved
            or self.preempted
            or self.evicted
            or self.pending
            or self.removed
            or self.pdb_breaches
            or self.quiet
        )


def difference(without: Outcome, changed: Outcome) -> Difference:
    """`changed` minus `without`."""
    pending = tuple(pod for pod in changed.pending() if not _is_pending(without, pod.key))
    placed = tuple(pod for pod in changed.placed() if _has_no_node(without, pod.key))
    moved = tuple(_moves(without, changed))
    preempted = _additional(changed.preempted, without.preempted)
    evicted = _additional(changed.evicted, without.evicted)
    removed = tuple(
        pod for key, pod in without.pods.items() if key not in changed.pods and not pod.is_completed
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
        pdb_breaches=_additional_breaches(without, changed),
        displaced=tuple({pod.key: pod for pod in lost}.values()),
        quiet=_quiet(without, changed),
        recovered_after=None
        if pending or _down(without, changed)
        else _recovered_after(changed, concerned),
    )


def _quiet(without: Outcome, changed: Outcome) -> int:
    """How many more pods were on nodes that went quiet."""
    known = 0 if without.outage is None else without.outage.concerned
    return 0 if changed.outage is None else max(changed.outage.concerned - known, 0)


def _down(without: Outcome, changed: Outcome) -> bool:
    """Whether pods that would be up are down, or away, in the end."""
    known = {one.pod for one in without.outage.lost} if without.outage else set()
    return changed.outage is not None and any(one.pod not in known for one in changed.outage.lost)


def _is_pending(outcome: Outcome, key: str) -> bool:
    pod = outcome.pods.get(key)
    return pod is not None and pod.is_pending


def _has_no_node(outcome: Outcome, key: str) -> bool:
    pod = outcome.pods.get(key)
    return pod is None or pod.is_pending


def _moves(without: Outcome, changed: Outcome) -> Iterable[Move]:
    for pod in changed.placed():
        before = without.pods.get(pod.key)
        if before is not None and before.is_placed and before.node != pod.node:
            yield Move(pod, before.node, pod.node)


def _additional(
    changed: Iterable[AnyDisplaced], without: Iterable[AnyDisplaced]
) -> tuple[AnyDisplaced, ...]:
    """Those of `changed` that `without` has not, pod and node considered."""
    known = Counter((one.pod.key, one.node) for one in without)
    additional = []
    for one in changed:
        place = (one.pod.key, one.node)
        if known[place] > 0:
            known[place] -= 1
        else:
            additional.append(one)
    return tuple(additional)


def _additional_breaches(without: Outcome, changed: Outcome) -> tuple[PdbBreach, ...]:
    known = Counter((one.pdb, one.pod) for one in without.pdb_breaches)
    additional = []
    for one in changed.pdb_breaches:
        if known[(one.pdb, one.pod)] > 0:
            known[(one.pdb, one.pod)] -= 1
        else:
            additional.append(one)
    return tuple(additional)


def _recovered_after(changed: Outcome, concerned: Iterable[str]) -> DurationNs | None:
    """When the last of `concerned` began to run; None when one of them never did, or is gone."""
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


def moved_on_the_way(outcome: Outcome) -> list[Move]:
    """The pods that one run displaced and placed again, on another node, by name."""
    moves: dict[str, Move] = {}
    for one in (*outcome.preempted, *outcome.evicted):
        end = outcome.pods.get(one.pod.key)
        if end is not None and end.is_placed and end.key not in moves:
            moves[end.key] = Move(end, one.node, end.node)
    return [moves[key] for key in sorted(moves) if moves[key].origin != moves[key].target]
