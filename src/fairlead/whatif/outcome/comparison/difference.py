"""Difference: the effect of a change on pods, from the runs with and without the change.

Pods of the two runs are compared in pairs (see `pod_role`).
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.apiserver.kind import (
    JOB,
    SCALABLE,
    STATEFUL_SET,
)
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.engine.workloads.job.progress import INDEX
from fairlead.whatif.outcome.comparison.pod_role import (
    PodRole,
    is_created_later,
    is_kept,
    pod_roles,
    pods_of_deleted_nodes,
)
from fairlead.whatif.outcome.outage import LossCause, LostPod, NodeHistory
from fairlead.whatif.outcome.run_outcome import (
    Displaced,
    Evicted,
    PdbBreach,
    PodEnd,
    Preempted,
    RunOutcome,
    is_device_resource,
)
from fairlead.whatif.outcome.workload import POD, ROLLOUT, WorkloadReadiness, WorkloadRef

_WITH_REPLICAS: Final = frozenset((ROLLOUT, *(kind.kind for kind in SCALABLE)))

AnyDisplaced = TypeVar("AnyDisplaced", bound=Displaced)


class Move(Struct, frozen=True):
    """A pod that the change moves from the node `origin` to the node `target`.

    In a result of `moves_within`, `origin` is the node from which the run displaced the pod. At
    most one of the three flags is set.
    """

    pod: PodEnd
    origin: str  # the pod's node at the end of the run without the change
    target: str  # the pod's node at the end of the run with the change
    # Whether the pod was deleted after the change, and `pod` is a new pod in its place.
    is_recreated: bool = False
    # Whether the pod stays on a failed node: `is_recreated` is False, and `target` is not in
    # service at the end. For example, zones A and B, the only zones, fail. While no zone has a
    # Ready node, no pod is evicted. If the change keeps A from returning, the pods of B therefore
    # stay on B. In the run without the change, A returns, and the pods of B are evicted and move to
    # A.
    is_staying: bool = False
    # Whether the pod has run on `target` since before the change, and only the run without the
    # change moves it. For example, the change prevents an autoscaler from removing `target`.
    is_unmoved: bool = False

    @property
    def how(self) -> str:
        """How the pod came to `target`, in words such as `placed elsewhere`.

        The words are only for pods that were not displaced.
        """
        if self.is_recreated:
            return "deleted and created again"
        if self.is_unmoved:
            return "moves only without the change"
        return "stays on a failed node" if self.is_staying else "placed elsewhere"


class PodUpdate(Struct, frozen=True):
    """A pod that the change replaces by another version: `pod` replaces `before`.

    `pod` has another revision of the template, or was created again on the same node. After an
    in-place resize, `pod` and `before` are the same pod.
    """

    before: PodEnd
    pod: PodEnd

    @property
    def is_resize(self) -> bool:
        """Whether the change resized the pod in place."""
        is_same = self.before.key == self.pod.key and self.before.is_initial == self.pod.is_initial
        return is_same and self.before.revision == self.pod.revision


WAITS_FOR_LOWER: Final = "the StatefulSet waits until its pods with lower ordinals are ready"


class NotCreated(Struct, frozen=True):
    """A deleted pod that its workload still needs, but had not recreated at the end.

    `waits_for` is the pod that must become ready first, because a StatefulSet creates its pods in
    order; "" if there is none. `quota` is the quota that refuses the pods of the workload, as
    `quota/NAMESPACE/NAME`; "" if there is none.
    """

    pod: PodEnd
    waits_for: str = ""
    quota: str = ""

    @property
    def awaited(self) -> str:
        """The pod or the quota for which the workload waits; "" if there is none."""
        return self.waits_for or self.quota


class Difference(Struct, frozen=True, kw_only=True, dict=True):
    """All effects that only the run with the change has."""

    placed: tuple[PodEnd, ...]  # pods that have a node only with the change
    # Pods that started and ended (completed or failed) after the change, if more pods of their
    # workload did so than without the change.
    completed: tuple[PodEnd, ...]
    # Pods (displaced or not) that are on another node than without the change.
    moved: tuple[Move, ...]
    updated: tuple[PodUpdate, ...]
    preempted: tuple[Preempted, ...]
    evicted: tuple[Evicted, ...]
    pending: tuple[PodEnd, ...]
    # Pods that were displaced, or whose node was deleted, and that nothing replaces.
    gone: tuple[PodEnd, ...]
    # Displaced pods, and deleted pods, if their workload still wants them but has not created them
    # again. A deleted pod of a StatefulSet may only wait until pods with lower ordinals are ready.
    # A deleted pod of any other kind of workload is listed only if the API server refuses its
    # replacement.
    not_created: tuple[NotCreated, ...]
    # Pods that exist only without the change, because the change deletes them or prevents their
    # creation. Pods in `gone` and `not_created` are left out. Examples are pods whose workload has
    # fewer replicas, DaemonSet pods and static pods of deleted nodes, and guard pods of OpenShift.
    # Further examples are displaced pods that their workload no longer needs, displaced pods of a
    # deleted namespace, and pods that only a finalizer keeps. If only the run without the change
    # replaces a pod, the replacement is in `removed`, too. It is left out if the old pod is lost on
    # a failed node in the run with the change.
    removed: tuple[PodEnd, ...]
    # The pods in `removed` that the run without the change creates, after the time of the change.
    fewer: tuple[PodEnd, ...]
    # Pods that were displaced, but end on the same node as without the change.
    returned: tuple[PodEnd, ...]
    reallocated: tuple[str, ...]  # the resources whose requested total changes
    pdb_breaches: tuple[PdbBreach, ...]
    # Pods that were preempted or evicted, or whose node was deleted; each pod is listed once.
    displaced: tuple[PodEnd, ...]
    # The number of pods that are on failed nodes because of the change, or stay there longer
    # because of it.
    pods_on_failed_nodes: int
    # The time from the change until the last affected pod started and the last pod of a failed node
    # was up again. The affected pods are the displaced, moved, updated, new and completed pods.
    # None if at the end an affected pod neither runs nor has completed.
    recovered_after: DurationNs | None

    def __repr__(self) -> str:
        """Return the numbers of pods with each effect; a text with the pods would be very long."""
        fields = ((name, getattr(self, name)) for name in self.__struct_fields__)
        counts = [f"{len(one)} {name}" for name, one in fields if isinstance(one, tuple) and one]
        return f"<Difference: {', '.join(counts) or 'none'}>"

    @property
    def is_empty(self) -> bool:
        """Whether the change affects no pod, and no total of requested resources."""
        return not (
            self.placed
            or self.completed
            or self.moved
            or self.updated
            or self.preempted
            or self.evicted
            or self.pending
            or self.gone
            or self.not_created
            or self.removed
            or self.reallocated
            or self.pdb_breaches
            or self.pods_on_failed_nodes
        )

    @property
    def elsewhere(self) -> list[PodEnd]:
        """The moved pods that were not displaced, in the order of `moved`."""
        return [one.pod for one in self._not_displaced]

    @property
    def recreated(self) -> list[PodEnd]:
        """The pods of `elsewhere` that were deleted and created again."""
        return [one.pod for one in self._not_displaced if one.is_recreated]

    @property
    def staying(self) -> list[PodEnd]:
        """The pods of `elsewhere` that stay on nodes that are not in service."""
        return [one.pod for one in self._not_displaced if one.is_staying]

    @property
    def unmoved(self) -> list[PodEnd]:
        """The pods of `elsewhere` that only the run without the change moves."""
        return [one.pod for one in self._not_displaced if one.is_unmoved]

    @property
    def replaced(self) -> list[PodUpdate]:
        """The `updated` pods, except pods whose new version is pending."""
        return [one for one in self.updated if not one.pod.is_pending]

    @property
    def unneeded(self) -> set[str]:
        """The keys of the pods that were replaced by updated pods, or are no longer needed."""
        return unneeded(self.updated, self.removed)

    @cached_property
    def _not_displaced(self) -> list[Move]:
        displaced = {pod.key for pod in self.displaced}
        return [one for one in self.moved if one.pod.key not in displaced]


def difference(without: RunOutcome, changed: RunOutcome) -> Difference:
    """Return how the pods of the run `changed` differ from the pods of the run `without`."""
    preempted = _additional(changed.preempted, without.preempted)
    evicted = _additional(changed.evicted, without.evicted)
    left = {one.pod.key for one in (*preempted, *evicted)}
    of_deleted_nodes = pods_of_deleted_nodes(without, changed)
    roles = list(pod_roles(without, changed, left, of_deleted_nodes))
    missing = [role.before for role in roles if role.is_missing(left)]
    not_back = [
        pod
        for pod in missing
        if (pod.key in left or pod.key in of_deleted_nodes) and not _returns_with_node(pod)
    ]
    lacking = _nodes_without_daemon(changed)
    surplus = _surplus(not_back, changed, lacking)
    not_replaced = [pod for pod in not_back if pod.key not in surplus]
    # The pods of a StatefulSet have fixed names, and those of a DaemonSet have fixed nodes. So a
    # missing pod has not been created again, even if its controller itself deleted it. In a
    # rollout, other controllers delete pods of an old revision, and lack pods of the new one.
    displaced_keys = {pod.key for pod in not_back}
    refused = _refused_revisions(changed)
    deleted = (
        pod
        for pod in missing
        if pod.key not in displaced_keys
        and (
            _is_of_stateful_set(pod)
            or (pod.workload, pod.own_node) in lacking
            or ((pod.workload, pod.revision) in refused and not is_created_later(pod, without))
        )
    )
    not_created = list(_not_created([*not_replaced, *deleted], changed, lacking))
    awaited = {one.pod.key for one in not_created}
    lost_keys = awaited.union(pod.key for pod in not_replaced)
    pending = [role.after for role in roles if role.is_newly_pending]
    placed = [role.after for role in roles if role.is_newly_placed]
    updated = [
        PodUpdate(role.before, role.after)
        for role in roles
        if role.is_updated(left) and role.after.key not in changed.unfinished_resizes
    ]
    elsewhere = [
        role for role in roles if role.is_moved or (role.is_newly_pending and role.had_node)
    ]
    displaced = [one for one in elsewhere if one.is_displaced(left, without, of_deleted_nodes)]
    evictions = [one.pod for one in (*preempted, *evicted)]
    lost = [*(role.after for role in displaced), *not_replaced]
    concerned = [
        *(pod for pod in evictions if pod.key not in surplus),
        *lost,
        *(role.after for role in elsewhere if not is_created_later(role.before, without)),
        *placed,
        *(update.pod for update in updated),
    ]
    completed = tuple(_completed(without, changed))
    down = _down(changed)
    removed = tuple(
        pod
        for pod in missing
        if pod.key not in lost_keys and not (pod.key in down and is_created_later(pod, without))
    )
    current = {role.before.key: role.after for role in roles if role.is_renamed}
    failed = {node.name for node in changed.nodes if not node.is_ready}
    return Difference(
        placed=tuple(placed),
        completed=completed,
        moved=tuple(_move(role, failed, changed) for role in elsewhere if role.is_moved),
        updated=tuple(updated),
        preempted=preempted,
        evicted=evicted,
        pending=tuple(pending),
        gone=tuple(pod for pod in not_replaced if pod.key not in awaited),
        not_created=tuple(not_created),
        removed=removed,
        fewer=tuple(pod for pod in removed if is_created_later(pod, without)),
        returned=tuple(role.after for role in roles if role.is_returned(left)),
        reallocated=_reallocated(without, changed),
        pdb_breaches=_additional_breaches(without, changed),
        displaced=tuple({pod.key: pod for pod in (*evictions, *lost)}.values()),
        pods_on_failed_nodes=_pods_on_failed_nodes(without, changed),
        recovered_after=None
        if pending or not_created or newly_lost(without, changed, unneeded(updated, removed))
        else _recovered_after(changed, {pod.key for pod in concerned}, current, completed),
    )


def _move(role: PodRole, failed: Container[str], changed: RunOutcome) -> Move:
    """Return the move of the pod in `role`; `failed` are the nodes out of service at the end."""
    target, is_recreated = role.after.node, role.is_recreated
    is_staying = not is_recreated and target in failed
    is_unmoved = not is_staying and is_kept(role.after, changed)
    return Move(role.after, role.before.node, target, is_recreated, is_staying, is_unmoved)


def _completed(without: RunOutcome, changed: RunOutcome) -> Iterator[PodEnd]:
    """Yield the pods that completed only in `changed`, sorted by key.

    Only pods that started after the change are compared. Names can be random, so pods are counted
    by workload. If n more pods of a workload completed in `changed` than in `without`, at most n of
    them are yielded.
    """
    before, after = list(_ended_since_start(without)), list(_ended_since_start(changed))
    known = {pod.key for pod in before}
    more = Counter(pod.workload for pod in after)
    more.subtract(pod.workload for pod in before)
    for pod in after:
        if pod.key not in known and more[pod.workload] > 0:
            more[pod.workload] -= 1
            yield pod


def _ended_since_start(run: RunOutcome) -> Iterator[PodEnd]:
    """Yield the pods that started after the change and have completed, sorted by key."""
    touched = run.pods.keys() if run.touched is None else run.touched & run.pods.keys()
    ended = {pod.key: pod for pod in run.completed_and_deleted}
    ended |= {key: run.pods[key] for key in touched}
    for _, pod in sorted(ended.items()):
        if pod.is_completed and pod.started_at is not None and pod.started_at >= run.started_at:
            yield pod


def _returns_with_node(pod: PodEnd) -> bool:
    """Return whether `pod` is a guard pod of OpenShift.

    OpenShift creates a guard pod again when the pod's node is schedulable again.
    """
    return pod.belongs_to_node and pod.workload.kind == POD


_DaemonNode = tuple[WorkloadRef, str]  # (DaemonSet, name of a node)


def _nodes_without_daemon(run: RunOutcome) -> set[_DaemonNode]:
    """Return the nodes on which DaemonSets could not create a pod that they want."""
    return {(one.workload, node) for one in run.errors if one.workload for node in one.nodes}


def _refused_revisions(run: RunOutcome) -> set[tuple[WorkloadRef, str]]:
    """Return (workload, template revision) of the pods that workloads lack and could not create."""
    return {
        (one.workload, one.revision)
        for one in run.errors
        if one.workload and one.missing and not one.is_failed_job
    }


def _surplus(
    displaced: Collection[PodEnd], changed: RunOutcome, lacking: Collection[_DaemonNode]
) -> set[str]:
    """Return the keys of the `displaced` pods whose workload has all wanted pods at the end.

    The pods of a deleted namespace are included, because no pod in it is wanted. A DaemonSet has
    all wanted pods on the nodes that are not in `lacking`. If a node is not in `lacking`, the
    DaemonSet has created a pod on it again, or no longer wants one there, for example because of a
    new taint. The pods of failed Jobs and of failed indexes are left out. Such Jobs want no more
    pods, but lack the results of these pods.
    """
    failed = {one.subject for one in changed.errors if one.is_failed_job}
    candidates = [
        pod
        for pod in displaced
        if pod.workload in changed.workloads
        and (
            pod.workload.kind in _WITH_REPLICAS
            or (pod.workload.is_daemon_set and (pod.workload, pod.own_node) not in lacking)
            or (pod.workload.kind == JOB.kind and _subject(pod.workload) not in failed)
        )
        and not _is_of_failed_index(pod, changed.workloads[pod.workload])
    ]
    present: Counter[WorkloadRef] = Counter()
    if candidates:
        present.update(
            pod.workload
            for pod in changed.pods.values()
            if not (pod.is_completed or pod.is_terminating)
        )
        # A DaemonSet's pod on another node cannot fill the place on a node that lacks one, so each
        # of these nodes counts as if it had its pod.
        present.update(workload for workload, _ in lacking)
    return {
        *(pod.key for pod in displaced if pod.namespace in changed.deleted_namespaces),
        *(
            pod.key
            for pod in candidates
            if present[pod.workload] >= changed.workloads[pod.workload].wanted
        ),
    }


def _subject(job: WorkloadRef) -> str:
    """Return the `ObjectError.subject` of `job`."""
    return f"{JOB.kind} {job.namespace}/{job.name}"


def _is_of_failed_index(pod: PodEnd, job: WorkloadReadiness) -> bool:
    """Return whether `job` does not try the index of `pod` again."""
    index = pod.labels.get(INDEX, "")
    # Pods from before Kubernetes 1.28 have no label with their index.
    return bool(job.failed_indexes) and (not index.isdigit() or int(index) in job.failed_indexes)


def _is_of_stateful_set(pod: PodEnd) -> bool:
    return pod.workload.kind == STATEFUL_SET.kind


def _not_created(
    lost: Iterable[PodEnd], changed: RunOutcome, lacking: Container[_DaemonNode]
) -> Iterator[NotCreated]:
    """Yield the `lost` pods that their workloads still need at the end of the run `changed`.

    `lacking` are the nodes on which DaemonSets still need a pod.
    """
    by_workload: dict[WorkloadRef, list[PodEnd]] = defaultdict(list)
    quotas = _refusing_quotas(changed)
    for pod in lost:
        if (pod.workload, pod.own_node) in lacking:
            yield NotCreated(pod, quota=quotas.get(pod.workload, ""))
        elif pod.workload in changed.workloads:
            by_workload[pod.workload].append(pod)
    present: dict[WorkloadRef, list[PodEnd]] = defaultdict(list)
    keys = {pod.key for pods in by_workload.values() for pod in pods} - _down(changed)
    silent = {node.name for node in changed.nodes if not node.is_ready}
    for pod in changed.pods.values() if by_workload else ():
        # A lost pod may terminate without end, for example because its kubelet does not answer. If
        # the change made its node fail, the pod is reported as down instead. A pod that terminates
        # when the horizon ends the run counts as present.
        stays = changed.settled or pod.node in silent
        is_leaving = pod.key in keys and pod.is_terminating and stays
        if pod.workload in by_workload and not pod.is_completed and not is_leaving:
            present[pod.workload].append(pod)
    for workload, pods in by_workload.items():
        shortage = changed.workloads[workload].wanted - len(present[workload])
        waits_for = ""
        if workload.kind == STATEFUL_SET.kind:
            pods.sort(key=_ordinal)  # fewer replicas remove the pods with the highest ordinals
            # A StatefulSet creates no further pod while it waits for this pod.
            ordered = sorted(present[workload], key=_ordinal)
            waits_for = next((pod.key for pod in ordered if not pod.node), "")
        for pod in pods[: max(shortage, 0)]:
            yield NotCreated(pod, waits_for, quotas.get(workload, ""))


def _refusing_quotas(run: RunOutcome) -> dict[WorkloadRef, str]:
    """Return, for each workload, the quota that refuses its missing pods at the end of `run`.

    The quota is written `quota/NAMESPACE/NAME`. Workloads without such a quota are left out.
    """
    return {
        one.workload: f"quota/{one.workload.namespace}/{excess.quota}"
        for one in run.errors
        if one.workload is not None and one.missing
        for excess in [QuotaExcess.read(one.message)]
        if excess is not None
    }


def _down(run: RunOutcome) -> set[str]:
    """Return the keys of the pods that `run` lost with their nodes, and that are still needed."""
    return {one.pod for one in run.outage.lost if one.cause.is_loss} if run.outage else set()


def _ordinal(pod: PodEnd) -> tuple[int, str]:
    """Return a key that sorts the pods of a StatefulSet by ordinal; other names come last."""
    found = ordinal_of(pod.workload.name, pod.name)
    return sys.maxsize if found is None else found, pod.key


# --- lists -------------------------------------------------------------------------------------


def _reallocated(without: RunOutcome, changed: RunOutcome) -> tuple[str, ...]:
    """Return the resources whose total requests differ, in the order of `changed.allocations`.

    Terminating pods are not counted, because they may have been replaced already. Devices (DRA) are
    left out: their totals change with ResourceSlices and claims, even if no pod requests other
    devices than before.
    """
    before = {one.resource: one.requested for one in without.allocations}
    more = {
        one.resource: one.requested - before.get(one.resource, 0)
        for one in changed.allocations
        if not is_device_resource(one.resource)
    }
    if not any(more.values()):
        return ()
    leaving, left = _terminating_requests(without), _terminating_requests(changed)
    return tuple(name for name, amount in more.items() if amount != left[name] - leaving[name])


def _terminating_requests(run: RunOutcome) -> Counter[str]:
    total: Counter[str] = Counter()
    for pod in (pod for node in run.nodes for pod in node.pods if pod.is_terminating):
        total.update({**pod.requests, "pods": 1})
    return total


def _pods_on_failed_nodes(without: RunOutcome, changed: RunOutcome) -> int:
    """Return how many more pods were on failed nodes in `changed` than in `without`.

    The numbers are compared node by node; a node with fewer pods in `changed` counts as 0. All pods
    of a node in `changed` count if the node did not fail in `without`. All pods also count if the
    node returned in `without`, and returned later or not at all in `changed`.
    """
    if changed.outage is None:
        return 0
    known = {one.node: one for one in without.outage.nodes} if without.outage else {}
    more = 0
    for one in changed.outage.nodes:
        same = known.get(one.node)
        if same is not None and not _is_back_later(one, same):
            more += max(one.pods - same.pods, 0)
        else:
            more += one.pods
    return more


def _is_back_later(node: NodeHistory, other: NodeHistory) -> bool:
    """Return whether `node` returns later than `other`, or not at all although `other` returns."""
    if other.back_at is None:
        return False
    return node.back_at is None or node.back_at > other.back_at


def unneeded(updated: Iterable[PodUpdate], removed: Iterable[PodEnd]) -> set[str]:
    """Return the keys of the pods that `updated` replaces, and of the pods in `removed`."""
    return {*(one.before.key for one in updated), *(pod.key for pod in removed)}


def newly_lost(
    without: RunOutcome, changed: RunOutcome, unneeded: Container[str]
) -> tuple[LostPod, ...]:
    """Return the pods that are lost because of failed nodes in `changed`, but not in `without`.

    Pods that completed or were deleted in `without` are left out. Pods that need no replacement,
    such as pods with keys in `unneeded`, are left out, too.
    """
    if changed.outage is None:
        return ()
    known = {one.pod for one in without.outage.lost} if without.outage else set()
    return tuple(
        one
        for one in changed.outage.lost
        if one.cause.is_loss
        and not (one.cause is LossCause.NOT_REPLACED and one.pod in unneeded)
        and one.pod not in known
        and not _has_ended(one.pod, without)
    )


def _has_ended(key: str, run: RunOutcome) -> bool:
    """Return whether the pod `key` completed or was deleted in `run`; False if it was replaced."""
    pod = run.pods.get(key)
    return pod.is_completed if pod is not None else key in (run.touched or ())


def _additional(
    changed: Iterable[AnyDisplaced], without: Iterable[AnyDisplaced]
) -> tuple[AnyDisplaced, ...]:
    """Return the entries of `changed` that are not in `without`.

    Entries are equal if they have the same pod and node, or the same workload and node. The second
    rule is for pods with random names.
    """
    additional, known = tuple(changed), tuple(without)
    for identity in (_pod_and_node, _workload_and_node):
        shared = Counter(map(identity, additional)) & Counter(map(identity, known))
        additional, known = _drop(additional, shared, identity), _drop(known, shared, identity)
    return additional


def _drop(
    entries: tuple[AnyDisplaced, ...],
    counts: Counter[Hashable],
    identity: Callable[[AnyDisplaced], Hashable],
) -> tuple[AnyDisplaced, ...]:
    """Return `entries` without the first `counts[key]` entries of each identity `key`."""
    left, kept = Counter(counts), []
    for one in entries:
        if left[identity(one)] > 0:
            left[identity(one)] -= 1
        else:
            kept.append(one)
    return tuple(kept)


def _pod_and_node(one: Displaced) -> Hashable:
    return (one.pod.key, one.node)


def _workload_and_node(one: Displaced) -> Hashable:
    return (one.pod.workload, one.node)


def _additional_breaches(without: RunOutcome, changed: RunOutcome) -> tuple[PdbBreach, ...]:
    known = Counter((one.pdb, one.pod) for one in without.pdb_breaches)
    additional = []
    for one in changed.pdb_breaches:
        if known[(one.pdb, one.pod)] > 0:
            known[(one.pdb, one.pod)] -= 1
        else:
            additional.append(one)
    return tuple(additional)


def _recovered_after(
    changed: RunOutcome,
    concerned: Iterable[str],
    current: Mapping[str, PodEnd],
    completed: Iterable[PodEnd],
) -> DurationNs | None:
    """Return the time from the change until the last affected pod started.

    The affected pods are the pods with keys in `concerned`, and the pods in `completed`. The result
    is at least the time until the last pod of a failed node was up again. Return None if at the end
    a pod with a key in `concerned` neither runs nor has completed. If a pod of the run without the
    change has another name in `changed`, `current` maps its key to the pod in `changed`.
    """
    starts = [pod.started_at for pod in completed]
    for key in concerned:
        pod = changed.pods.get(key) or current.get(key)
        is_over = pod is not None and pod.is_completed
        if not is_over and (pod is None or pod.started_at is None or pod.is_terminating):
            return None
        starts.append(None if pod is None else pod.started_at)
    latest = max((changed.after_start(at) for at in starts if at is not None), default=0)
    latest = max(latest, 0)
    if changed.outage is not None and changed.outage.last_back_at is not None:
        latest = max(latest, changed.after_start(changed.outage.last_back_at))
    return latest


def moves_within(outcome: RunOutcome) -> list[Move]:
    """Return the pods that a run displaced and placed on another node, sorted by name."""
    moves: dict[str, Move] = {}
    for one in (*outcome.preempted, *outcome.evicted):
        end = outcome.pods.get(one.pod.key)
        if end is not None and end.is_placed and end.key not in moves:
            moves[end.key] = Move(end, one.node, end.node)
    return [moves[key] for key in sorted(moves) if moves[key].origin != moves[key].target]
