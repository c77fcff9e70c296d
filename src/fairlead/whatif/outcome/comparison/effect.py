"""Effect: the effect of a change at every level of an answer: pods, budgets and workloads."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from fairlead.apiserver.admission.plugins.limit_ranger import without_own_amounts
from fairlead.apiserver.admission.plugins.pod_security import violated_level
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.apiserver.kind import DEPLOYMENT, STATEFUL_SET
from fairlead.whatif.change.kubectl_drain import NO_DRAIN, KubectlDrain
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import (
    LONGER,
    ChangedRange,
    PodAutoscalerOutcome,
    ReplicaShortage,
    changed_ranges,
    new_shortages,
)
from fairlead.whatif.outcome.budget import BudgetOutcome, budget_outcomes
from fairlead.whatif.outcome.comparison.difference import (
    Difference,
    difference,
    newly_lost,
)
from fairlead.whatif.outcome.comparison.interchangeable_pod import with_exchanged_names
from fairlead.whatif.outcome.comparison.pod_role import changed_keys
from fairlead.whatif.outcome.comparison.waited_pod import (
    AwaitedReturn,
    WaitedPod,
    awaited_returns,
    waited_pods,
)
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect, workload_effects
from fairlead.whatif.outcome.outage import LostPod
from fairlead.whatif.outcome.packing import PackingRow
from fairlead.whatif.outcome.run_outcome import (
    DeletedClaim,
    ObjectError,
    Recurrence,
    RefusedWorkload,
    RunOutcome,
    Undrained,
    loops_of,
)
from fairlead.whatif.outcome.workload import POD, WorkloadRef


class Effect(Struct, frozen=True, kw_only=True):
    """Two runs and all differences between them.

    The fields `lost`, `loops` and `errors` contain only entries that the change causes.
    """

    without: RunOutcome
    changed: RunOutcome
    difference: Difference
    workloads: tuple[WorkloadEffect, ...]
    budgets: tuple[BudgetOutcome, ...]
    lost: tuple[LostPod, ...]  # pods that were on failed nodes and do not run again
    loops: tuple[Recurrence, ...]  # repeated displacements
    errors: tuple[ObjectError, ...]  # failures of controllers
    drain: KubectlDrain = NO_DRAIN  # the result of kubectl's checks of the drained nodes
    # With --reschedule: how tightly pods are packed in the dump and at the end of each run.
    packing: tuple[PackingRow, ...] = ()
    # Pods that waited long for a node, and then got one or were deleted.
    waited: tuple[WaitedPod, ...] = ()
    # Pods of StatefulSets that ran again only when their failed nodes returned.
    awaited_returns: tuple[AwaitedReturn, ...] = ()
    # The PersistentVolumeClaims that are deleted only with the change.
    deleted_claims: tuple[DeletedClaim, ...] = ()
    # The part of the change that has no effect because its controller is not simulated.
    unsimulated: str = ""

    def __repr__(self) -> str:
        """Return a text with only the difference; a text with both runs would be very long."""
        return f"<Effect: {self.difference!r}>"

    @property
    def is_none(self) -> bool:
        """Whether the change affects no pod, deletes no claim, and is completed without errors.

        The result is False if a drain is refused or incomplete, or if pods wait longer for their
        nodes because of the change (`waited`). The result is False if the range of replicas of a
        workload differs between the runs, or if the metrics of an autoscaler propose more than
        maxReplicas for longer than without the change. The result is also False if workloads do not
        create new pods that the change asks for (`held_back`), or if workloads keep old pods
        although the change updates the pods. Finally, the result is False if replacements of
        existing pods would be refused (`refused_replacements`), or if drifted nodes are not
        replaced (`unreplaced`).
        """
        is_held = self.held_back or any(one.outdated for one in self.workloads)
        is_complete = self.is_drain_complete and not self.lasting_errors and not is_held
        is_scaled = bool(self.replica_ranges or self.replica_shortages)
        affects_none = self.difference.is_empty and not self.waited and not is_scaled
        has_lasting = self.deleted_claims or self.unreplaced or self.refused_replacements
        return affects_none and is_complete and not has_lasting

    @property
    def unreplaced(self) -> dict[str, str]:
        """The nodes that drift because of the change and that Karpenter has not replaced.

        The result maps each node to the reason why Karpenter does not replace the node at the end,
        or to "" if there is no such reason.
        """
        before, after = self.without.autoscaling, self.changed.autoscaling
        if after is None:
            return {}
        known = before.drifted if before is not None else {}
        return {node: why for node, why in after.drifted.items() if node not in known}

    @property
    def refused_workloads(self) -> list[RefusedWorkload]:
        """The workloads whose next pods are refused only with the change.

        A workload whose next pods are refused in both runs is also in the list if replacements of
        its existing pods are refused only with the change.
        """
        known = {one.workload: one.replacements_refused for one in self.without.refused_workloads}
        return [
            one
            for one in self.changed.refused_workloads
            if one.workload not in known or (one.replacements_refused and not known[one.workload])
        ]

    @property
    def refused_replacements(self) -> list[RefusedWorkload]:
        """The `refused_workloads` for which replacements of existing pods are refused, too."""
        return [one for one in self.refused_workloads if one.replacements_refused]

    @property
    def held_back(self) -> list[WorkloadEffect]:
        """The workloads that want new pods, but do not create them.

        These are StatefulSets that wait for older pods, and paused Deployments without a
        ReplicaSet. Workloads with newly pending pods, and workloads whose pods the API server
        refuses, are left out.
        """
        refused = {one.workload for one in self.errors}
        return [
            one
            for one in self.workloads
            if one.workload.kind in (STATEFUL_SET.kind, DEPLOYMENT.kind)
            and one.missing
            and not one.pending
            and one.workload not in refused
        ]

    @property
    def replica_shortages(self) -> list[tuple[PodAutoscalerOutcome, ReplicaShortage]]:
        """The autoscalers that lack replicas for longer than without the change."""
        return new_shortages(self.without.pod_autoscalers, self.changed.pod_autoscalers)

    @property
    def shortages_of_both(self) -> list[tuple[PodAutoscalerOutcome, ReplicaShortage]]:
        """The autoscalers that lack replicas in both runs, at the end or for a long time."""
        caused = {one.autoscaler for one, _ in self.replica_shortages}
        known = {one.autoscaler for one in self.without.pod_autoscalers if one.shortage}
        return [
            (one, one.shortage)
            for one in self.changed.pod_autoscalers
            if one.autoscaler in known - caused
            and one.shortage is not None
            and not (one.shortage.is_over and one.shortage.lasted < LONGER)
        ]

    @property
    def replica_ranges(self) -> tuple[ChangedRange, ...]:
        """The workloads whose lowest or highest number of replicas differs between the runs."""
        return changed_ranges(self.without.pod_autoscalers, self.changed.pod_autoscalers)

    @property
    def is_drain_complete(self) -> bool:
        """Whether the drains of the change are complete, or the change has no drain.

        A drain is complete if kubectl did not refuse it, and all pods that it had to evict are
        gone. A rolling drain is complete only if all its nodes are also back in service.
        """
        is_back = all(one.back_at is not None for one in self.changed.drains)
        return is_back and not self.drain.refused and not self.changed.undrained

    @property
    def lasting_errors(self) -> list[ObjectError]:
        """The `errors` that still exist at the end.

        An error that only delayed the creation of pods is left out.
        """
        return [one for one in self.errors if not one.is_over]

    @property
    def untouched_workloads(self) -> int:
        """The number of workloads that have pods at the end and are not affected by the change."""
        affected = self._affected
        if affected:
            affected &= self.changed.workloads_of_pods
        return max(self.changed.workloads_total - len(affected), 0)

    @property
    def untouched_bare_pods(self) -> int:
        """How many of the `untouched_workloads` are pods without a controller.

        Static pods are left out.
        """
        alone = {ref for ref in self.changed.workloads_of_pods if ref.kind == POD}
        return min(len(alone - self.changed.static_pods - self._affected), self.untouched_workloads)

    @property
    def untouched_static_pods(self) -> int:
        """How many of the `untouched_workloads` are static pods."""
        return min(len(self.changed.static_pods - self._affected), self.untouched_workloads)

    @property
    def _affected(self) -> set[WorkloadRef]:
        affected = {one.workload for one in self.workloads}
        affected.update(one.workload for one in self.lasting_errors if one.workload is not None)
        return affected


def effect_of(without: RunOutcome, changed: RunOutcome, drain: KubectlDrain = NO_DRAIN) -> Effect:
    """Return the effect of `changed` in comparison with `without`.

    Node hours and costs of both runs are counted until the end of the longer run. A node that was
    being deleted in the dump may be drained in both runs. The pods that are left on such a node are
    part of the effect only if the change drains the node, too.
    """
    without, changed = _counted_to(changed, without), _counted_to(without, changed)
    changed = with_exchanged_names(without, changed, changed_keys(without, changed))
    changed = replace(changed, undrained=tuple(_additional_undrained(without, changed, drain)))
    found = difference(without, changed)
    budgets = budget_outcomes(without, changed, found.pdb_breaches)
    lost = newly_lost(without, changed, found.unneeded)
    waited = waited_pods(without, changed, found)
    returns = tuple(awaited_returns(changed, found))
    loops = {(one.kind, one.message) for one in without.recurrences}
    deleted = {one.claim for one in without.deleted_claims}
    return Effect(
        without=without,
        changed=changed,
        difference=found,
        workloads=tuple(
            workload_effects(without, changed, found, lost, budgets, (*waited, *returns))
        ),
        budgets=tuple(budgets),
        lost=lost,
        loops=tuple(
            one for one in loops_of(changed, without) if (one.kind, one.message) not in loops
        ),
        errors=tuple(_additional_errors(without, changed)),
        drain=drain,
        waited=waited,
        awaited_returns=returns,
        deleted_claims=tuple(one for one in changed.deleted_claims if one.claim not in deleted),
    )


def _additional_undrained(
    without: RunOutcome, changed: RunOutcome, drain: KubectlDrain
) -> Iterator[Undrained]:
    """Yield the pods of `changed` that drains have not removed.

    If drains have removed a pod in neither run, the pod is included only if `drain` or a rolling
    drain names its node.
    """
    known = {(one.pod.key, one.pod.node) for one in without.undrained}
    named = {*drain.nodes, *(one.node for one in changed.drains)}
    for one in changed.undrained:
        if one.pod.node in named or (one.pod.key, one.pod.node) not in known:
            yield one


def _additional_errors(without: RunOutcome, changed: RunOutcome) -> Iterator[ObjectError]:
    """Yield the errors of the run `changed` that the run `without` lacks, or has for fewer pods.

    If a Job exceeds its deadline in `without`, but fails for another reason in `changed`, the error
    is yielded, too. Messages are not compared, because they contain the names of the pods of each
    attempt.
    """
    known = {_identity(one): one for one in without.errors}
    for one in changed.errors:
        before = known.get(_identity(one))
        if (
            before is None
            or one.missing > before.missing
            or (before.exceeds_deadline and not one.exceeds_deadline)
        ):
            yield one


def _identity(error: ObjectError) -> tuple[str, bool, bool]:
    return error.subject, error.is_failed_job, error.is_failing_job


def _counted_to(other: RunOutcome, run: RunOutcome) -> RunOutcome:
    """Return `run` with its node hours counted until the end of `other`, if `other` ends later."""
    if run.autoscaling is None or other.ended_at <= run.ended_at:
        return run
    return replace(run, autoscaling=run.autoscaling.prolonged(other.ended_at - run.ended_at))


def by_reason(refused: Iterable[RefusedWorkload]) -> dict[str, list[RefusedWorkload]]:
    """Return the workloads `refused`, grouped by the reason of their refusal.

    The reason of a single workload is the whole message. If the same quota, the same bounds of a
    LimitRange or the same level of the Pod Security Standards refuse the pods of several workloads,
    the reason says nothing about single pods: their amounts and containers differ.
    """
    groups: dict[str, list[RefusedWorkload]] = defaultdict(list)
    for one in refused:
        groups[_rule(one.message)].append(one)
    return {
        rule if len(rows) > 1 else rows[0].message.rstrip("."): rows
        for rule, rows in groups.items()
    }


def _rule(message: str) -> str:
    """Return the rule that the refusal `message` names, without details about the refused pod."""
    excess = QuotaExcess.read(message)
    if excess is not None:
        return f"exceeded quota: {excess.quota}"
    return violated_level(message) or without_own_amounts(message).rstrip(".")
