"""PodRole: a pod of the run without a change, and its counterpart in the run with the change.

The counterpart of a pod is the pod with the same key in the other run. A replacement pod has the
key of the first pod in its chain of replacements. Pods with a key that exists in one run only are
paired within their workload. Pods of the same revision and node are paired first, then pods of the
same revision, then the remaining pods. DaemonSet pods and static pods belong to their node, so they
are paired only with pods of the same node. This also holds if the new pod still waits for that
node.

    without   web-6d4-aaaaa on n1    web-6d4-bbbbb on n2
    changed   web-6d4-ccccc on n2    web-6d4-ddddd on n3     one pod has moved, from n1 to n3

A pod that existed before the change has the same name in both runs. The change may delete such a
pod without displacing it, for example because of fewer replicas. If a later scale-up then creates a
pod of the same revision, the new pod is not the counterpart of the old pod.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from typing import Final

from msgspec import Struct

from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome
from fairlead.whatif.outcome.workload import POD

ABSENT: Final = PodEnd(namespace="", name="")


class PodRole(Struct, frozen=True):
    """A pod of one run of a what-if, and its counterpart in the other run.

    `before` is from the run without the change, `after` is from the run with the change.
    If the pod exists in one run only, the field for the other run is ABSENT.
    """

    before: PodEnd
    after: PodEnd

    @property
    def had_node(self) -> bool:
        """Whether the pod has a node in the run without the change."""
        return self.before is not ABSENT and not self.before.is_pending

    def is_missing(self, displaced: Collection[str]) -> bool:
        """Return whether the pod was deleted.

        A pod that completed in the run without the change does not count as deleted. `displaced`
        has the keys of preempted and evicted pods. Such a pod does not count as deleted while it
        terminates.
        """
        if self.after is ABSENT:
            return not self.before.is_completed
        return self.before is not ABSENT and _was_deleted(self.before, self.after, displaced)

    def is_displaced(
        self, displaced: Collection[str], without: RunOutcome, lost: Collection[str]
    ) -> bool:
        """Return whether the change displaced the pod from its node.

        `displaced` are the keys of pods that were preempted or evicted. `lost` are the keys of pods
        whose nodes the change deleted. A pod in `lost` counts as displaced if it ran before the
        change. A pod in `lost` also counts if it existed before the change and has since been
        deleted.
        """
        if self.after.key in displaced:
            return True
        # If neither holds, an autoscaler may have added the pod's node, and only in the run without
        # the change.
        started = self.before.started_at
        ran = started is not None and started <= without.started_at
        is_other = ran or self.before.is_initial > self.after.is_initial
        return is_other and self.before.key in lost

    @property
    def is_recreated(self) -> bool:
        """Whether `before` existed before the change, and `after` was created since the change."""
        return self.before.is_initial and self.after is not ABSENT and not self.after.is_initial

    @property
    def is_renamed(self) -> bool:
        """Whether the pod has another name in the run with the change."""
        before, after = self.before, self.after
        if before is ABSENT or after is ABSENT:
            return False
        return before.name != after.name or before.namespace != after.namespace

    @property
    def is_newly_pending(self) -> bool:
        """Whether the pod is pending only with the change."""
        if self.after is ABSENT or not self.after.is_pending:
            return False
        return self.before is ABSENT or not self.before.is_pending

    @property
    def is_newly_placed(self) -> bool:
        """Whether the pod has a node only with the change."""
        return self.after.is_placed and not self.had_node and not self._is_left_over

    def is_updated(self, displaced: Collection[str]) -> bool:
        """Return whether the pod has a new revision, or was recreated or resized on its node."""
        if not self.had_node or self.after is ABSENT or self.has_new_revision:
            return self.had_node and self.has_new_revision
        if self.before.node != self.after.node or self.after.key in displaced:
            return False
        is_new = self.before.is_initial > self.after.is_initial and not self.is_renamed
        return self.after.is_placed and (is_new or self.before.requests != self.after.requests)

    def is_returned(self, displaced: Collection[str]) -> bool:
        """Return whether the pod was displaced, but ends on the same node as without the change."""
        placed = self.before.is_placed and self.after.is_placed and not self.after.is_terminating
        is_same = self.before.node == self.after.node and not self.has_new_revision
        return placed and is_same and self.before.key in displaced

    @property
    def has_new_revision(self) -> bool:
        """Whether the pod's template revision differs between the runs without and with change."""
        before, after = self.before.revision, self.after.revision
        return before != "" and after not in ("", before)

    @property
    def is_moved(self) -> bool:
        """Whether the pod's node differs between the runs with and without the change."""
        if self.before.node == self.after.node:
            return False
        placed = self.before.is_placed and self.after.is_placed and not self._is_left_over
        return placed and not self.has_new_revision

    @property
    def _is_left_over(self) -> bool:
        """Whether the pod existed before the change, still terminates, and has no replacement."""
        return self.after.is_initial and self.after.is_terminating


def pod_roles(
    without: RunOutcome, changed: RunOutcome, displaced: Collection[str], lost: Collection[str]
) -> Iterator[PodRole]:
    """Yield a role for each pod that changed in either run.

    If nothing but the readiness of a pod changed, both runs have the same PodEnd object of the pod.
    Such a pod has a role only if its key is in `displaced`.

    Pods with the same key in both runs come first, sorted by key. Then come pods whose counterpart
    in the other run has a different key, and finally pods without a counterpart.
    `PodRole.is_displaced` explains `displaced` and `lost`.
    """
    alone: list[PodEnd] = []
    new: list[PodEnd] = []
    for key in changed_keys(without, changed):
        before, after = without.pods.get(key), changed.pods.get(key)
        if before is after and key not in displaced:
            continue
        if before is not None and after is not None and not _was_deleted(before, after, displaced):
            yield PodRole(before, after)
        elif before is not None:
            alone.append(before)
        elif after is not None:
            new.append(after)

    others, deleted = _split(
        alone,
        lambda pod: (
            pod.key in displaced
            or pod.belongs_to_node
            or is_created_later(pod, without)
            or pod.key in lost
        ),
    )
    for identity in (_same_place, _same_revision):
        created, kept = _split(new, lambda pod: is_created_later(pod, changed))
        pairs, deleted, kept = _pair(deleted, kept, identity)
        yield from pairs
        pairs, others, new = _pair(others, [*kept, *created], identity)
        yield from pairs
    removed = {_same_revision(pod) for pod in deleted}
    again, new = _split(
        new, lambda pod: _same_revision(pod) in removed and is_created_later(pod, changed)
    )
    # If a rollout is incomplete, some new pods are pending. The new pods with a node come first, so
    # that old pods are paired with them rather than with pending pods.
    new.sort(key=lambda pod: pod.is_pending)
    pairs, alone, new = _pair([*deleted, *others], new, _same_workload)
    yield from pairs
    yield from (PodRole(pod, ABSENT) for pod in alone)
    yield from (PodRole(ABSENT, pod) for pod in (*new, *again))


def _was_deleted(before: PodEnd, after: PodEnd, displaced: Collection[str]) -> bool:
    """Return whether the change deleted the pod; False if its key is in `displaced`.

    `before` and `after` have the same key. Usually, the two pods are counterparts. There is an
    exception: `after` was deleted and still exists, for example because the kubelet of its node
    does not answer. The counterpart of `before` may then be a pod that a rollout created.
    """
    is_deleted = after.is_terminating and not before.is_terminating
    return is_deleted and after.key not in displaced


def _split(
    pods: Iterable[PodEnd], condition: Callable[[PodEnd], bool]
) -> tuple[list[PodEnd], list[PodEnd]]:
    """Return (pods for which `condition` is true, the other pods)."""
    found: tuple[list[PodEnd], list[PodEnd]] = ([], [])
    for pod in pods:
        found[not condition(pod)].append(pod)
    return found


def is_created_later(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether a workload created `pod` in `run` after the instant of the change."""
    first_seen = pod.since if pod.started_at is None else pod.started_at
    return pod.owner is not None and not pod.is_initial and first_seen > run.started_at


def is_kept(pod: PodEnd, run: RunOutcome) -> bool:
    """Return whether `pod` of `run` has run since before the change.

    If only `run` has such a pod at the end, the other run has deleted it. For example, an
    autoscaler has removed its node.
    """
    started = pod.started_at
    return pod.is_initial and started is not None and started <= run.started_at


def pods_of_deleted_nodes(without: RunOutcome, changed: RunOutcome) -> frozenset[str]:
    """Return the keys of the pods that the change displaced when it deleted their nodes.

    The keys are the pods' keys in the run `without`. Pods of DaemonSets and static pods are left
    out. Pods that were created after the change, or deleted before their node, are left out, too.
    In the run `without`, a pod may still be terminating at the end, because its kubelet does not
    answer. Such a pod is left out if `changed` has no pod with its key.
    """
    nodes, lost = changed.node_names, changed.on_deleted_nodes
    return frozenset(
        key
        for key in changed_keys(without, changed)
        if (pod := without.pods.get(key)) is not None
        and pod.node not in nodes
        and (lost is None or key in lost)
        and not pod.belongs_to_node
        and not is_created_later(pod, without)
        and not (pod.is_initial and pod.is_terminating and key not in changed.pods)
    )


def changed_keys(without: RunOutcome, changed: RunOutcome) -> list[str]:
    """Return the keys of the pods that changed in either run, sorted.

    If one of the runs has no record of the changed pods, return the keys of all pods.
    """
    if without.touched is None or changed.touched is None:
        return sorted({*without.pods, *changed.pods})
    return sorted(without.touched | changed.touched)


def _pair(
    alone: list[PodEnd], new: list[PodEnd], identity: Callable[[PodEnd], Hashable]
) -> tuple[list[PodRole], list[PodEnd], list[PodEnd]]:
    """Return (pairs of pods with equal `identity`, rest of `alone`, rest of `new`)."""
    waiting: dict[Hashable, list[PodEnd]] = defaultdict(list)
    for pod in reversed(new):
        waiting[identity(pod)].append(pod)
    pairs, rest = [], []
    for pod in alone:
        candidates = [] if pod.workload.kind == POD else waiting.get(identity(pod), [])
        if pod.is_completed or not candidates:
            rest.append(pod)
        else:
            pairs.append(PodRole(pod, candidates.pop()))
    paired = {role.after.key for role in pairs}
    return pairs, rest, [pod for pod in new if pod.key not in paired]


def _same_place(pod: PodEnd) -> Hashable:
    return (pod.workload, pod.revision, pod.node)


def _same_revision(pod: PodEnd) -> Hashable:
    return (pod.workload, pod.revision, pod.own_node)


def _same_workload(pod: PodEnd) -> Hashable:
    return (pod.workload, pod.own_node)
