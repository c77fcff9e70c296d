"""WorkloadRecorder: records the times at which workloads' pods are created, become ready and end.

The number of ready pods at the start is computed from the number at the end and the transitions in
between.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.objects import ObjectMeta, Pod
from fairlead.api.pods.facts import condition, is_static, is_terminal, is_terminating
from fairlead.engine.core.instant import Instant
from fairlead.whatif.outcome.workload import (
    POD,
    WorkloadReadiness,
    WorkloadRef,
    revision_of,
    workload_of,
)


class Step(StrEnum):
    """The kind of a transition; LEFT means that the pod is deleted or terminating, or has ended."""

    CREATED = "created"
    PLACED = "placed"
    READY = "ready"
    UNREADY = "unready"
    LEFT = "left"


# Members that are read often (STYLE.md, rule 19).
_READY: Final = Step.READY
_UNREADY: Final = Step.UNREADY


class PodTransition(Struct, frozen=True):
    """One transition of a pod of `workload`; `revision` is the pod template's revision."""

    at: Instant
    workload: WorkloadRef
    revision: str
    step: Step


# The workload and the revision of a pod, and the metadata from which they were determined.
_Facts = tuple[WorkloadRef, str, ObjectMeta]


class WorkloadRecorder(Struct):
    """Records the transitions of the pods that change after the cluster was loaded.

    `placed` maps each workload to a number that begins at 0 when the cluster is loaded. The number
    grows by 1 when a pod gets a node. The number drops by 1 when a pod with a node ends, begins to
    terminate, or is deleted, whichever comes first. `deletions` has the time of the last deletion
    of a pod of each workload. The deletion of a pod that had ended or terminated is no transition.
    """

    transitions: list[PodTransition] = field(default_factory=list)
    placed: Counter[WorkloadRef] = field(default_factory=Counter)
    deletions: dict[WorkloadRef, Instant] = field(default_factory=dict)
    # {uid: whether the pod is ready}, for pods that have changed
    _is_ready: dict[str, bool] = field(default_factory=dict)
    # {ids of the labels and owner references, namespace: facts}, see `_facts_of`
    _facts: dict[tuple[int, int, str], _Facts] = field(default_factory=dict)

    def pod_changed(
        self, before: Pod | None, after: Pod | None, now: Instant, *, is_serving: bool
    ) -> None:
        """Record the change of a pod from `before` to `after`.

        `before` is None for a new pod, and `after` is None for a deleted pod. `is_serving` is True
        if the pod has no node, or if the node of the pod works.
        """
        pod = after or before
        if pod is None:
            return
        if before is None:
            self._add(pod, Step.CREATED, now)
        elif after is not None and after.spec.node_name and not before.spec.node_name:
            self._add(pod, Step.PLACED, now)
            self.placed[self._facts_of(pod)[0]] += 1
        if after is None:
            self.deletions[self._facts_of(pod)[0]] = now
        self._set_ready(before, pod, now, may_be_ready=after is not None and is_serving)
        if before is not None and (after is None or _is_over(after)) and not _is_over(before):
            self._add(pod, Step.LEFT, now)
            if before.spec.node_name:
                self.placed[self._facts_of(pod)[0]] -= 1

    def readiness_changed(self, before: Pod, after: Pod, now: Instant, *, is_serving: bool) -> None:
        """Record a change of a pod; its node, phase and deletion timestamp are unchanged.

        `is_serving` is True if the pod has no node, or if the node of the pod works.
        """
        self._set_ready(before, after, now, may_be_ready=is_serving)

    def node_changed(self, pods: Iterable[Pod], now: Instant, *, is_serving: bool) -> None:
        """Record that a node stopped or started working; `pods` are the pods on it.

        `is_serving` is the new state.
        """
        for pod in pods:
            self._set_ready(pod, pod, now, may_be_ready=is_serving)

    def _set_ready(self, before: Pod | None, pod: Pod, now: Instant, *, may_be_ready: bool) -> None:
        """Record whether `pod` is ready; `may_be_ready` is set if it exists and its node works."""
        uid = pod.metadata.uid
        is_ready = may_be_ready and _ready(pod)
        known = self._is_ready.get(uid)
        was_ready = (before is not None and _ready(before)) if known is None else known
        self._is_ready[uid] = is_ready
        if is_ready != was_ready:
            self._add(pod, _READY if is_ready else _UNREADY, now)

    def _add(self, pod: Pod, step: Step, now: Instant) -> None:
        workload, revision, _ = self._facts_of(pod)
        self.transitions.append(PodTransition(now, workload, revision, step))

    def _facts_of(self, pod: Pod) -> _Facts:
        """Return the facts of `pod`, which all its replicas share.

        The workload of a pod with a controller depends only on its namespace, labels and owner
        references. The replicas of one owner share the objects that contain the labels and the
        owner references. The recorder keeps the metadata, so these objects stay alive and their ids
        are unique.
        """
        meta = pod.metadata
        key = id(meta.labels), id(meta.owner_references), meta.namespace
        found = self._facts.get(key)
        if found is None:
            found = workload_of(pod), revision_of(pod), meta
            if found[0].kind != POD:  # else the name of the pod itself is part of the facts
                self._facts[key] = found
        return found

    # --- result ---------------------------------------------------------------------------

    def readiness(
        self,
        pods: Iterable[tuple[WorkloadRef, str, Pod]],
        wanted: Mapping[WorkloadRef, int],
        since: Instant,
        until: Instant,
        scaled: Container[WorkloadRef] = (),
    ) -> Iterator[tuple[WorkloadRef, WorkloadReadiness]]:
        """Yield the readiness of each workload in `wanted` from `since` to `until`.

        `pods` contains (workload, uid, pod) for the pods that exist at `until`. The workloads in
        `scaled` get a `history`.
        """
        deltas = self._deltas()
        at_end = self._ready_pods(pods, wanted)
        for ref in sorted(wanted):
            changes = [(at, change) for at, change in deltas[ref] if at >= since]
            before = at_end[ref] - sum(change for _, change in changes)
            counts = _ready_counts(before, changes, since)
            found = _readiness(before, counts, wanted[ref], until)
            if found.has_ended and not ref.is_permanent:
                found = replace(found, ready_counts=tuple(_steps(before, counts)))
            if ref in scaled:
                found = replace(found, history=tuple(_steps(before, counts)))
            yield ref, found

    def touched(self, since: Instant) -> set[WorkloadRef]:
        """Return the workloads with a transition at or after `since`."""
        return {one.workload for one in self.transitions if one.at >= since}

    def _deltas(self) -> dict[WorkloadRef, list[tuple[Instant, int]]]:
        """Return {workload: [(instant, change of its number of ready pods)]}, ordered by time."""
        deltas: dict[WorkloadRef, list[tuple[Instant, int]]] = defaultdict(list)
        for one in self.transitions:
            change = (one.step is _READY) - (one.step is _UNREADY)
            deltas[one.workload].append((one.at, change))
        return deltas

    def _ready_pods(
        self, pods: Iterable[tuple[WorkloadRef, str, Pod]], workloads: Iterable[WorkloadRef]
    ) -> dict[WorkloadRef, int]:
        ready = dict.fromkeys(workloads, 0)
        last: Pod | None = None  # one pod represents all unchanged replicas, see `Recorder.pods_of`
        is_last_ready = False
        for ref, uid, pod in pods:
            if ref in ready:
                known = self._is_ready.get(uid)
                if known is None and pod is not last:
                    last, is_last_ready = pod, _ready(pod)
                ready[ref] += is_last_ready if known is None else known
        return ready


def _ready_counts(
    before: int, changes: Iterable[tuple[Instant, int]], since: Instant
) -> dict[Instant, int]:
    """Return {instant: number of ready pods from then on}; the first instant is `since`.

    `before` is the number before `since`. `changes` are the changes of the number from `since` on.
    Several changes at one instant count as one. Example: `before` is 3, and `changes` are (5 s, -1)
    and (9 s, +1). Then 3 pods were ready before 5 s, 2 from 5 s, and 3 from 9 s.
    """
    counts = {since: before}
    ready = before
    for at, change in changes:
        ready += change
        counts[at] = ready
    return counts


def _readiness(
    before: int, counts: Mapping[Instant, int], wanted: int, until: Instant
) -> WorkloadReadiness:
    """Return the readiness of a workload whose numbers of ready pods were `counts` until `until`.

    `before` is the number before the first instant.
    """
    lowest, at_end = min(counts.values()), counts[max(counts)]
    instants = [*counts, max(until, *counts)]
    times = [
        instants[n + 1] - at for n, (at, ready) in enumerate(counts.items()) if ready == lowest
    ]
    is_lowest = [ready == lowest for ready in counts.values()]
    found = WorkloadReadiness(
        wanted=wanted,
        before=before,
        lowest=lowest,
        lowest_for=sum(times),
        at_end=at_end,
        gaps=sum(now and not then for then, now in pairwise((False, *is_lowest))),
    )
    if found.has_ended:
        return replace(found, lowest_for=sum(times[:-1]))
    return replace(found, lowest_for=None) if at_end == lowest < wanted else found


def _steps(before: int, counts: Mapping[Instant, int]) -> Iterator[tuple[Instant, int]]:
    """Yield each (instant, count) of `counts` whose count differs from the previous count.

    `before` is the count before the first instant.
    """
    known = before
    for at, ready in counts.items():
        if ready != known:
            yield at, ready
            known = ready


def _is_over(pod: Pod) -> bool:
    return is_terminating(pod) or is_terminal(pod)


def _ready(pod: Pod) -> bool:
    """Return whether `pod` is ready.

    A running pod without a Ready condition in the dump counts as ready.
    """
    if pod.status.phase != "Running" or not pod.spec.node_name or is_terminating(pod):
        return False
    found = condition(pod, "Ready")
    return found is None or found.status == "True"


def count_workloads(pods: Iterable[Pod]) -> int:
    """Return the number of workloads of `pods`; one pod per controller is examined.

    Each static pod is a workload, although a Node owns it (`workload_of`).
    """
    by_owner: dict[str, Pod] = {}
    alone = 0
    for pod in pods:
        owners = pod.metadata.owner_references
        if owners and not is_static(pod):
            by_owner.setdefault(owners[0].uid or owners[0].name, pod)
        else:
            alone += 1
    return alone + len({workload_of(pod) for pod in by_owner.values()})
