"""WorkloadEffect: the effect of a change on one workload, as a row of an answer's first table.

The counts of a workload are the numbers of its pods in the lists of a Difference. A workload
without pods in these lists has a row only in two cases: the number of its ready pods changes, or
the change makes its pods wait longer for nodes.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.selector import selector_matches
from fairlead.api.text.name_list import listed
from fairlead.apiserver.kind import DEPLOYMENT, STATEFUL_SET
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.workloads.identity import ordinal_of
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.waiting_time import WAITED_MIN
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.difference import Difference
from fairlead.whatif.outcome.comparison.pod_role import changed_keys, is_kept
from fairlead.whatif.outcome.comparison.waited_pod import AwaitedReturn, WaitedPod, only_waited
from fairlead.whatif.outcome.outage import LostPod
from fairlead.whatif.outcome.run_outcome import PodEnd, RunOutcome, negative_workloads
from fairlead.whatif.outcome.scheduling_message import short_reason
from fairlead.whatif.outcome.workload import POD, WorkloadReadiness, WorkloadRef

_PREEMPTORS_MAX: Final = 3


class WorkloadEffect(Struct, frozen=True, kw_only=True):
    """The effect of a change on one workload.

    The counts are numbers of pods. A pod may be in several counts. For most counts, `Difference`
    and `Effect` define which pods are counted.
    """

    workload: WorkloadRef
    readiness: WorkloadReadiness  # the readiness in the run with the change
    belongs_to_node: bool = False  # whether the workload is a DaemonSet or a static pod
    # Whether both runs had a time without a ready pod, and this time was at least as long in the
    # run without the change.
    is_down_without: bool = False
    # Whether all pods have negative priorities (`negative_workloads`). Such pods exist to give way
    # to other pods.
    has_negative_priority: bool = False
    preempted: int = 0
    evicted: int = 0
    moved: int = 0
    moved_by_preemption: int = 0  # the `moved` pods that were preempted
    elsewhere: int = 0  # the `moved` pods that were not displaced
    recreated: int = 0  # the pods in `elsewhere` that were deleted and created again
    staying: int = 0  # the pods in `elsewhere` that the change keeps on nodes out of service
    unmoved: int = 0  # the pods in `elsewhere` that only the run without the change moves
    returned: int = 0
    moved_alike: int = 0  # the `returned` pods that both runs moved to the same node
    updated: int = 0
    placed: int = 0
    # The `placed` pods that ran before the change, and that only the run without the change
    # deletes.
    kept: int = 0
    completed: int = 0  # ended after the change; not in `placed`
    failed: int = 0  # ended after the change; not in `placed`
    ended: int = 0  # the `completed` and `failed` pods that existed already when the run began
    pending: int = 0
    gone: int = 0
    not_created: int = 0
    # Pods that the workload wants but could not create, without those in `not_created` or `down`.
    # Also counts the pods that a StatefulSet creates only after another pod is ready, and the pods
    # that a paused Deployment without a ReplicaSet lacks.
    missing: int = 0
    removed: int = 0
    fewer: int = 0  # the `removed` pods that never existed in the run with the change
    down: int = 0  # on failed nodes, and do not run again
    undrained: int = 0  # could not be evicted or do not stop
    # Pods that still run an old revision at the end, for one of three causes. Pods of the new
    # revision are pending or cannot be created. The StatefulSet or DaemonSet waits for a pod that
    # is not ready. The run ended during the rollout. Pods that the update strategy keeps at an old
    # revision do not count.
    outdated: int = 0
    # The displaced pods that found a node only after WAITED_MIN or more. Also all pods that are not
    # displaced, moved or new, if the change makes their wait for a node longer.
    waited: int = 0
    waited_for: DurationNs = 0  # the longest wait of a pod in `waited`
    # Pods of a StatefulSet that were missing for WAITED_MIN or more, until their failed nodes
    # returned.
    awaited_node: int = 0
    # Why `pending` pods wait and `down` pods do not run, most frequent first.
    reasons: tuple[str, ...] = ()
    by: tuple[str, ...] = ()  # the workloads that preempted pods, and the causes of evictions
    # The budgets (name, result) that cover the displaced or undrained pods. Budgets that cover
    # other pods of the workload are included if they have too few healthy pods.
    budgets: tuple[tuple[str, BudgetResult], ...] = ()

    @property
    def is_harmed(self) -> bool:
        """Whether the change harmed the workload.

        The workload is harmed if pods are pending, gone, not created, undrained, down or failed.
        The workload is also harmed if fewer pods than wanted are ready at the end, or if it
        `had_no_ready_pod`. Finally, it is harmed if pods `waited` for a node or for the return of
        their node, or if a budget was breached. A workload is not harmed if it
        `has_negative_priority`.
        """
        if self.has_negative_priority:
            return False
        left_over = self._lost + self.undrained + self.failed + self.waited + self.awaited_node
        is_breached = self.budget is BudgetResult.BREACHED
        return bool(left_over or self._missing or self.had_no_ready_pod or is_breached)

    @property
    def had_no_ready_pod(self) -> bool:
        """Whether, because of the change, no pod was ready at some time.

        The result is False if no pod was ready before the change. The result is also False if the
        time without a ready pod is at least as long in the run without the change. Finally, it is
        False if the workload `has_negative_priority`.
        """
        return self.readiness.had_none and not (self.is_down_without or self.has_negative_priority)

    @property
    def is_unavailable(self) -> bool:
        """Whether the workload `had_no_ready_pod` for UNAVAILABLE_MIN or more, or until the end.

        The result is False for workloads whose pods end by themselves, such as Jobs.
        """
        is_outage = self.had_no_ready_pod and self.readiness.is_outage
        return is_outage and self.workload.is_permanent

    @property
    def budget(self) -> BudgetResult | None:
        """The worst state of the workload's budgets; None if it has no budget."""
        return max((state for _, state in self.budgets), key=list(BudgetResult).index, default=None)

    @property
    def _lost(self) -> int:
        """The number of pods that do not run at the end."""
        return self.pending + self.gone + self.not_created + self.missing + self.down

    @property
    def _missing(self) -> int:
        return max(self.readiness.wanted - self.readiness.at_end, 0)

    @property
    def _wait(self) -> str:
        up_to = "" if self.waited == 1 else "up to "
        return f"{up_to}{for_readers(self.waited_for)}"

    @property
    def severity(self) -> tuple[int, ...]:
        """A sort key: the most severely harmed workload comes first."""
        return (
            self.has_negative_priority,
            not self.is_harmed,
            self.belongs_to_node,
            not self.is_unavailable,
            -(self._lost + self.undrained),
            -self._missing,
            -self.waited,
            -self.awaited_node,
            -self.preempted,
            -self.evicted,
            -self.moved,
        )

    @property
    def words(self) -> str:
        """A one-line summary: `3 evicted (drain), 2 moved, 1 pending: Insufficient cpu`."""
        return self._summary(is_short=False)

    @property
    def short_words(self) -> str:
        """A shorter form of `words` for a narrow column.

        Reasons are left out. Of the workloads that preempted pods, at most _PREEMPTORS_MAX are
        named. The number of evictions is left out if other counts include all evicted pods. But if
        no pod is lost, the number is left out only if the other counts include no other pods. The
        causes of the evictions are then shown with the other counts.

        Examples: `3 evicted (drain), 3 moved` becomes `3 moved (drain)`; `54 not drained, 7
        pending: Insufficient cpu, 7 evicted (drain)` becomes `54 undrained, 7 pending`.
        """
        return self._summary(is_short=True)

    def _summary(self, *, is_short: bool) -> str:
        why = f": {', '.join(self.reasons)}" if self.reasons and not is_short else ""
        names = [name for name in self.by if "/" in name and " " not in name]
        preemptors = listed(names, _PREEMPTORS_MAX if is_short else len(names))
        causes = ", ".join(short_cause(name) for name in self.by if "/" not in name or " " in name)
        cause = f" ({causes})" if causes else ""
        lost = self._lost
        moved = self.moved - self.elsewhere
        displaced, others = self.preempted + self.evicted, lost + moved + self.returned
        # The causes of evictions are not those of pods that moved because they were preempted, or
        # because their node was deleted.
        is_mixed = bool(self.moved_by_preemption if moved else self.preempted)
        is_all = is_short and not lost and displaced == others and not is_mixed
        is_implied = is_all or (is_short and lost > 0 and displaced <= others)
        back = self.returned - self.moved_alike
        is_late = 0 < back == self.awaited_node
        when = "when the node returned" if is_late else "on the same node"
        fewer = "fewer" if is_short else "fewer than without the change"
        if self.placed:  # With these, the workload may have as many pods as without the change.
            fewer = "only without the change"
        parts = (
            (self.undrained, "undrained" if is_short else "not drained"),
            (self.pending, f"pending{why}"),
            (self.gone, "gone for good"),
            (self.not_created, "not created again"),
            (self.missing, "not created"),
            (self.down, f"down{why if not self.pending else ''}"),
            (self.preempted, f"preempted by {preemptors}" if preemptors else "preempted"),
            (0 if is_implied else self.evicted, f"evicted{cause}"),
            (moved, f"moved{cause if is_all else ''}"),
            (back, f"back {when}{cause if is_all and not moved else ''}"),
            (self.moved_alike, "moved as without the change"),
            (self.waited, f"waited {self._wait}{'' if is_short else ' for a node'}"),
            (0 if is_late else self.awaited_node, "waited for the failed node"),
            (self.recreated, "created again elsewhere"),
            (
                self.elsewhere - self.recreated - self.staying - self.unmoved,
                "placed elsewhere",
            ),
            (self.unmoved, "moved only without the change"),
            (self.staying, f"on {'a failed node' if self.staying == 1 else 'failed nodes'}"),
            (self.updated, "updated"),
            (self.outdated, "not updated"),
            (self.placed - self.kept + self.completed + self.failed - self.ended, "new"),
            (self.kept, "removed only without the change"),
            (self.completed, "completed"),
            (self.failed, "failed"),
            (self.removed - self.fewer, "removed"),
            (self.fewer, fewer),
        )
        words = ", ".join(f"{count:,} {what}" for count, what in parts if count)
        return words or "pods not ready for a time"


class _Tally(Struct):
    """Collects the values of one WorkloadEffect; `counts` has the numbers, by field name."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    by: dict[str, None] = field(default_factory=dict)
    budgets: dict[str, BudgetResult] = field(default_factory=dict)


def workload_effects(
    without: RunOutcome,
    changed: RunOutcome,
    difference: Difference,
    lost: Sequence[LostPod],
    budgets: Sequence[BudgetOutcome],
    waited: Sequence[WaitedPod | AwaitedReturn],
) -> list[WorkloadEffect]:
    """Return an entry for each workload that the change affects; the greatest losses come first.

    Workloads with a negative priority come last. Workloads with the same losses are ordered by
    descending priority, then by name. The priority of a workload is the highest priority of its
    pods.

    Unready pods alone do not count as an effect if the readiness of the workload is the same in
    both runs.

    `lost` are the pods that were on failed nodes and, because of the change, do not run again.
    `waited` are the pods that waited long for a node, or for the return of their node.
    """
    tallies = _tallies(without, changed, difference, lost)
    _add_later_pods(tallies, without, changed)
    _add_waits(tallies, difference, [one for one in waited if type(one) is WaitedPod])
    for one in waited:
        if type(one) is AwaitedReturn:
            tallies[one.pod.workload].counts["awaited_node"] += one.missed >= WAITED_MIN
    _add_budgets(tallies, changed, difference, budgets)
    _add_outdated(tallies, without, changed)
    for ref, readiness in changed.workloads.items():
        other = without.workloads.get(ref)
        # `history` also has the changes of the number that are not visible in a row.
        if other is not None and replace(other, history=()) == replace(readiness, history=()):
            continue  # the same happens without the change
        if ref.kind == POD and not _pod_of(ref, without, changed):
            continue  # both runs lose the pod, perhaps at different times
        # `wanted` is the smaller number if a DaemonSet loses pods with removed nodes: the other
        # pods were ready all the time.
        was_short = readiness.lowest < min(readiness.before, readiness.wanted)
        end = readiness.before if other is None else other.at_end
        if was_short or readiness.at_end != end:
            tallies.setdefault(ref, _Tally())
    _add_unmet_budgets(tallies, changed, budgets)
    unchanged = tallies.keys() - changed.workloads.keys()
    down = {ref: tallies[ref].counts["down"] for ref in unchanged}
    steady = _steady(down, changed)
    priorities = _priorities(tallies.keys(), without, changed)
    # Other pods of a workload than those in `priorities` may have another priority.
    is_any_negative = any(priority < 0 for priority in priorities.values())
    negative = negative_workloads(without, changed) if is_any_negative else set[WorkloadRef]()
    effects = [
        _effect(ref, tally, without, changed, steady, is_negative=ref in negative)
        for ref, tally in tallies.items()
    ]
    return sorted(
        effects,
        key=lambda one: (one.severity, -priorities.get(one.workload, 0), one.workload),
    )


def _priorities(
    workloads: Collection[WorkloadRef], without: RunOutcome, changed: RunOutcome
) -> dict[WorkloadRef, int]:
    """Return the highest priority of the pods of each of `workloads` that has pods.

    If a workload has pods that changed in one of the runs, only these pods count.
    """
    if not workloads:
        return {}
    runs, keys = (without, changed), changed_keys(without, changed)
    found: dict[WorkloadRef, int] = {}
    for pod in (run.pods[key] for run in runs for key in keys if key in run.pods):
        if (ref := pod.workload) in workloads:
            found[ref] = max(found.get(ref, pod.priority), pod.priority)
    for ref in [one for one in workloads if one not in found]:
        pods = [pod for run in runs for pod in run.pods_by_workload.get(ref, ())]
        if pods:
            found[ref] = max(pod.priority for pod in pods)
    return found


def _tallies(
    without: RunOutcome, changed: RunOutcome, found: Difference, lost: Iterable[LostPod]
) -> dict[WorkloadRef, _Tally]:
    tallies: dict[WorkloadRef, _Tally] = defaultdict(_Tally)
    for name, pods in _lists(changed, found):
        for pod in {pod.key: pod for pod in pods}.values():  # a pod can be displaced repeatedly
            tallies[pod.workload].counts[name] += 1
    for victim in found.preempted:
        by = changed.pods.get(victim.by)
        preemptor = by.workload if by else victim.by_workload or victim.by
        tallies[victim.pod.workload].by[str(preemptor)] = None
    for evicted in found.evicted:
        tallies[evicted.pod.workload].by[evicted.why] = None
    for pod in found.pending:
        tallies[pod.workload].reasons[short_reason(pod.reason)] += 1
    # A pod is down only if it is in none of the lists of pods that do not run.
    listed = (*found.pending, *found.gone, *(one.pod for one in found.not_created))
    not_running = {pod.key for pod in listed}
    pending = {pod.key for pod in found.pending}  # `pod.reason` is more exact than the lost cause
    for one in lost:
        pod_lost = changed.pods.get(one.pod) or without.pods.get(one.pod)
        if pod_lost is not None:
            tally = tallies[pod_lost.workload]
            tally.counts["down"] += one.pod not in not_running
            tally.reasons.update(() if one.pod in pending else (one.cause.words,))
    known = {one.subject: one.missing for one in without.errors}
    for error in changed.errors:
        more = error.missing - known.get(error.subject, 0)
        if error.workload is not None and more > 0:
            counts = tallies[error.workload].counts
            counts["missing"] = max(more - counts["not_created"] - counts["down"], 0)
    return tallies


def _add_later_pods(
    tallies: dict[WorkloadRef, _Tally], without: RunOutcome, changed: RunOutcome
) -> None:
    """Count pods as "missing" if a StatefulSet creates them only after another pod is ready.

    A StatefulSet with the policy Parallel creates all its pods at once, so none of its pods counts
    as missing. If the cluster still changes at the end of the run with the change, only
    StatefulSets with pending pods are considered, because only these certainly wait. Also count the
    wanted pods of a Deployment that has no pods although nothing changes any more. Such a
    Deployment is paused and has no ReplicaSet.
    """
    waiting = {
        ref
        for ref in changed.workloads
        if ref.kind == STATEFUL_SET.kind
        and (changed.settled or (ref in tallies and tallies[ref].counts["pending"]))
    }
    if changed.settled:
        idle = {ref for ref in changed.workloads if ref.kind == DEPLOYMENT.kind}
        waiting |= idle.difference(changed.pods_by_workload)
    if not waiting:
        return
    before, after = (_uncreated(waiting, run) for run in (without, changed))
    for ref in sorted(waiting):
        tally = tallies.get(ref) or _Tally()
        counted = tally.counts["not_created"] + tally.counts["down"]
        more = after[ref] - before[ref] - counted
        if more > tally.counts["missing"]:
            tally.counts["missing"] = more
            tallies[ref] = tally


def _uncreated(refs: Collection[WorkloadRef], run: RunOutcome) -> Counter[WorkloadRef]:
    """Return, for each workload in `refs`, how many wanted pods it lacks at the end of `run`.

    Workloads that lack no pods are left out.
    """
    lacking = Counter({ref: one.wanted for ref, one in run.workloads.items() if ref in refs})
    for ref in lacking:
        pods = run.pods_by_workload.get(ref, ())
        lacking[ref] -= sum(not pod.is_completed for pod in pods)
    return +lacking  # without the workloads that have more pods than they want


def _lists(changed: RunOutcome, found: Difference) -> Iterator[tuple[str, list[PodEnd]]]:
    yield "preempted", [one.pod for one in found.preempted]
    yield "evicted", [one.pod for one in found.evicted]
    preempted = {one.pod.key for one in found.preempted}
    moved = [one.pod for one in found.moved]
    yield "moved", moved
    yield "moved_by_preemption", [pod for pod in moved if pod.key in preempted]
    yield "elsewhere", found.elsewhere
    yield "recreated", found.recreated
    yield "staying", found.staying
    yield "unmoved", found.unmoved
    yield "returned", list(found.returned)
    yield "moved_alike", list(_moved_alike(found))
    yield "updated", [one.pod for one in found.replaced]
    yield "placed", list(found.placed)
    yield "kept", [pod for pod in found.placed if is_kept(pod, changed)]
    yield "completed", [pod for pod in found.completed if not pod.has_failed]
    yield "failed", [pod for pod in found.completed if pod.has_failed]
    yield "ended", [pod for pod in found.completed if pod.is_initial]
    yield "pending", list(found.pending)
    yield "gone", list(found.gone)
    yield "not_created", [one.pod for one in found.not_created]
    yield "removed", list(found.removed)
    yield "fewer", list(found.fewer)
    yield "undrained", [one.pod for one in changed.blocking]


def _moved_alike(found: Difference) -> Iterator[PodEnd]:
    """Yield the pods of `found.returned` that left their nodes and are on another node at the end.

    This other node is the same in both runs.
    """
    left: dict[str, set[str]] = defaultdict(set)
    for one in (*found.preempted, *found.evicted):
        left[one.pod.key].add(one.node)
    yield from (pod for pod in found.returned if pod.node not in left.get(pod.key, {pod.node}))


def _add_budgets(
    tallies: dict[WorkloadRef, _Tally],
    changed: RunOutcome,
    found: Difference,
    budgets: Iterable[BudgetOutcome],
) -> None:
    states = {one.pdb: one.state for one in budgets}
    owners = {pod.key: pod.workload for _, pods in _lists(changed, found) for pod in pods}
    for history in changed.budgets:
        for key in (*history.displaced, *history.refused):
            if history.pdb in states and key in owners:
                tallies[owners[key]].budgets[history.pdb] = states[history.pdb]


def _add_waits(
    tallies: Mapping[WorkloadRef, _Tally], found: Difference, waited: Sequence[WaitedPod]
) -> None:
    """Count the pods in `waited` for their workloads.

    A new or moved pod is left out if it was not displaced.
    """
    keys = {pod.key for pod in found.displaced}
    keys.update(one.pod.key for one in only_waited(waited, found))
    for one in waited:
        if one.pod.key in keys:
            counts = tallies[one.pod.workload].counts
            counts["waited"] += 1
            counts["waited_for"] = max(counts["waited_for"], one.waited)


def _add_outdated(
    tallies: dict[WorkloadRef, _Tally], without: RunOutcome, changed: RunOutcome
) -> None:
    """For each workload whose rollout is not finished, count its pods of old revisions.

    A rollout is not finished if pods of the new revision are pending or cannot be created, or if a
    StatefulSet or DaemonSet waits for a pod. A rollout is not finished either if the cluster still
    changes at the end of the run `changed`. A revision is old if it is in use at the end of the run
    `without`: a pod has the revision, a workload lacks pods of the revision, or the revision is the
    newest of a workload that has pods without a revision label. All other revisions are new. Pods
    that the update strategy of their workload keeps at an old revision do not count.
    """
    continues = not changed.settled
    waiting = {
        ref
        for ref, tally in tallies.items()
        if tally.counts["pending"] or (continues and tally.counts["updated"])
    }
    refused = {
        (one.workload, one.revision)
        for one in changed.errors
        if one.missing and one.revision and one.workload in tallies
    }
    waiting.update(ref for ref, _ in refused if ref is not None)
    held = set(changed.update_revisions.items()) - set(without.update_revisions.items())
    waits = {ref for ref, _ in held} if changed.settled else set()
    waiting |= waits
    if not waiting:
        return
    known = {(pod.owner, pod.revision) for pod in without.pods.values()}
    known |= {(one.workload, one.revision) for one in without.errors}
    known |= {one for one in without.update_revisions.items() if (one[0], "") in known}
    pods = [pod for pod in changed.pods.values() if pod.owner in waiting]
    pending = {(pod.owner, pod.revision) for pod in pods if continues or pod.is_pending}
    wanted = refused | held | pending
    rolled_out = {ref for ref, _ in wanted - known}
    for pod in pods:
        is_old = pod.owner in rolled_out and (pod.owner, pod.revision) in known
        if not is_old or _keeps_revision(pod, changed.kept_revisions):
            continue
        if (pod.is_placed or pod.owner in waits) and not (pod.is_completed or pod.is_terminating):
            tallies.setdefault(pod.workload, _Tally()).counts["outdated"] += 1


def _keeps_revision(pod: PodEnd, kept: Mapping[WorkloadRef, int | None]) -> bool:
    """Return whether `pod` keeps its revision in rollouts; see `RunOutcome.kept_revisions`."""
    if pod.workload not in kept:
        return False
    first, ordinal = kept[pod.workload], ordinal_of(pod.workload.name, pod.name)
    return first is None or (ordinal is not None and ordinal < first)


def expected_rollout(rows: Iterable[WorkloadEffect], ran: DurationNs) -> DurationNs | None:
    """Return the time from the change until the rollouts of `rows` are finished.

    The rollouts have run for `ran`, and are assumed to go on at the same pace. Return None if no
    pod is updated.
    """
    times = [ran * (one.updated + one.outdated) // one.updated for one in rows if one.updated]
    return max(times, default=None)


def _add_unmet_budgets(
    tallies: Mapping[WorkloadRef, _Tally], changed: RunOutcome, budgets: Iterable[BudgetOutcome]
) -> None:
    """Record the unmet `budgets` for the workloads that these budgets cover.

    A budget is unmet if it has too few healthy pods.
    """
    unmet = {one.pdb for one in budgets if one.state is BudgetResult.UNMET}
    if not unmet:
        return
    of_workload = changed.pods_by_workload
    pods = {ref: of_workload[ref][-1] for ref in tallies if ref in of_workload}
    for history in changed.budgets:
        if history.pdb in unmet:
            namespace = history.pdb.partition("/")[0]
            for workload, pod in pods.items():
                if pod.namespace == namespace and selector_matches(history.selector, pod.labels):
                    tallies[workload].budgets[history.pdb] = BudgetResult.UNMET


def _effect(
    ref: WorkloadRef,
    tally: _Tally,
    without: RunOutcome,
    changed: RunOutcome,
    steady: Mapping[WorkloadRef, WorkloadReadiness],
    *,
    is_negative: bool,
) -> WorkloadEffect:
    pod = _pod_of(ref, without, changed) if ref.kind == POD else None
    readiness = changed.workloads.get(ref) or steady[ref]
    # A lost or stopped pod without a controller is still wanted, although nothing replaces it.
    if ref.kind == POD and (tally.counts["gone"] or tally.counts["down"]):
        readiness = replace(readiness, wanted=1, lowest_for=None)
    return WorkloadEffect(
        workload=ref,
        readiness=readiness,
        belongs_to_node=ref.is_daemon_set or (pod is not None and pod.belongs_to_node),
        is_down_without=_is_down_as_long(without.workloads.get(ref), readiness),
        has_negative_priority=is_negative,
        **tally.counts,
        reasons=tuple(reason for reason, _ in tally.reasons.most_common()),
        by=tuple(tally.by),
        budgets=tuple(tally.budgets.items()),
    )


def _is_down_as_long(without: WorkloadReadiness | None, changed: WorkloadReadiness) -> bool:
    """Return whether the time without a ready pod is at least as long without the change.

    The result is False if the workload always has a ready pod in one of the runs.
    """
    if without is None or not (without.had_none and changed.had_none):
        return False
    if without.lowest_for is None:
        return True
    return changed.lowest_for is not None and changed.lowest_for <= without.lowest_for


def _pod_of(ref: WorkloadRef, without: RunOutcome, changed: RunOutcome) -> PodEnd | None:
    """Return the pod `ref` of the run `changed`, or else of `without`; None if both lack it."""
    key = f"{ref.namespace}/{ref.name}"
    return changed.pods.get(key) or without.pods.get(key)


def _steady(
    down: Mapping[WorkloadRef, int], changed: RunOutcome
) -> dict[WorkloadRef, WorkloadReadiness]:
    """Return the readiness of the workloads in `down`, which must not be in `changed.workloads`.

    `down` maps each workload to the number of its pods on failed nodes. `changed.workloads` has
    only workloads whose pods changed in the run. So these nodes had failed before the run.
    """
    wanted, ready = dict.fromkeys(down, 0), dict.fromkeys(down, 0)
    for pod in changed.pods.values() if down else ():
        if pod.workload in ready and not (pod.is_completed or pod.is_terminating):
            wanted[pod.workload] += 1
            ready[pod.workload] += pod.is_placed
    return {
        ref: WorkloadReadiness(
            wanted=wanted[ref],
            before=count,
            lowest=count - down[ref],
            lowest_for=None,
            at_end=count - down[ref],
        )
        for ref, count in ready.items()
    }


def short_cause(why: str) -> str:
    """Return a cause of evictions in short form.

    `taint node.kubernetes.io/unreachable:NoExecute` becomes `taint unreachable`.
    """
    return why.replace("node.kubernetes.io/", "").replace(":NoExecute", "")
