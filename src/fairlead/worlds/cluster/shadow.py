"""Shadow: decides about every pod that another scheduler places, and compares the decisions.

    a pod gets a node                       evaluate the pod, compare the nodes, apply the update
    a pod is nominated before its binding   as above, and count the pod on the node
    a pod is nominated after preemption     check whether the pod fits any node, apply the update
    any other update                        apply the update

Before kube-scheduler waits to bind a pod, for example for its volumes, it nominates the pod to the
chosen node (NominatedNodeNameForExpectation). From then on, kube-scheduler counts the pod on that
node, and so does the shadow. The binding is then not compared again.

A shadow replaces an engine and issues no commands. A shadow makes its decision with the state
before the update. Bindings may be observed in another order than the order of the decisions, so the
other scheduler may have decided with another state. Some of the reported differences have only this
cause.

The other scheduler may evaluate only a sample of n feasible nodes (percentageOfNodesToScore). Its
chosen node may be the best node of such a sample, but not the best of all nodes. This is possible
if at least n - 1 other feasible nodes have the same score as the chosen node or a lower score. Such
a placement is reported as `sampled`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.status import Status
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded, Stimulus
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.scheduling.compose import BuiltProfile, PluginHandle, Shared, build_profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.evaluation import evaluate
from fairlead.engine.scheduling.failure import POD_SCHEDULED, UNSCHEDULABLE
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.node_sample import ADAPTIVE, feasible_nodes_to_find
from fairlead.engine.scheduling.prioritization import best_positions, explain_scores
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo


class ShadowAgreement(StrEnum):
    """How another scheduler's placement of a pod compares with the shadow's own evaluation."""

    EQUAL = "equal"  # one of the best nodes
    SAMPLED = "sampled"  # a feasible node with a lower score, but the best of a possible sample
    LOWER = "lower"  # a feasible node with a lower score
    INFEASIBLE = "infeasible"  # a node on which the pod does not fit
    UNSCHEDULABLE = "unschedulable"  # the pod fits no node
    NEEDLESS = "needless"  # the pod was nominated after preemption, but fits a node
    PREEMPTED = "preempted"  # the pod was nominated after preemption, and fits no node
    ERROR = "error"  # a plugin failed


PLACEMENTS: Final = (
    ShadowAgreement.EQUAL,
    ShadowAgreement.SAMPLED,
    ShadowAgreement.LOWER,
    ShadowAgreement.INFEASIBLE,
    ShadowAgreement.UNSCHEDULABLE,
)


class ShadowDecision(Struct, frozen=True):
    """The decision of one configuration about a pod that was placed on, or nominated to, `node`.

    The two scores are set only if `agreement` is LOWER or SAMPLED.
    """

    at: Instant
    configuration: str
    agreement: ShadowAgreement
    pod: str
    scheduler: str
    node: str
    choices: tuple[str, ...] = ()  # at most CHOICES_MAX of the best nodes
    equals: int = 0  # the number of best nodes
    feasible: int = 0  # the number of feasible nodes
    score: int | None = None  # the total score of `node`
    best_score: int | None = None  # the total score of the best nodes
    # Why the pod fits no node, or why it does not fit `node`. If `agreement` is ERROR, the error of
    # a plugin.
    reason: str = ""
    victims: tuple[str, ...] = ()  # the pods that the configuration would have preempted


CHOICES_MAX: Final = 10
Value = TypeVar("Value")
OnDecision = Callable[[ShadowDecision], None]


class _Configuration(Struct, frozen=True):
    """A configuration to compare.

    `built` contains its profiles, and `percentages` contains the percentageOfNodesToScore of each
    profile. `built` and `percentages` are keyed by the profile's scheduler name.
    """

    name: str
    built: Mapping[str, BuiltProfile]
    percentages: Mapping[str, int | None]


class Shadow:
    """A `CommandSource` that compares other schedulers' placements with its own choices.

    A Shadow issues no commands.
    """

    def __init__(self, configs: Mapping[str, SchedulerConfig], on_decision: OnDecision) -> None:
        """`configs` maps names to the configurations that the shadow uses. Raises ProfileError."""
        has_rules = any(one.version.device_taint_rules for one in configs.values())
        self.cluster = Cluster(device_taint_rules=has_rules)
        self._nominator = Nominator()
        self._on_decision = on_decision
        self._configurations = tuple(self._build(name, one) for name, one in configs.items())

    def _build(self, name: str, config: SchedulerConfig) -> _Configuration:
        handle = PluginHandle(self.cluster, self._nominator)
        shared = Shared(version=config.version)
        built = {
            profile.scheduler_name: build_profile(
                profile, handle, TieBreak(0), config.out_of_tree, shared=shared
            )
            for profile in config.profiles
        }
        percentages = {one.scheduler_name: one.node_percentage for one in config.profiles}
        return _Configuration(name, built, percentages)

    # --- CommandSource ---------------------------------------------------------------------

    def handle(self, stimulus: Stimulus, now: Instant) -> Sequence[IssuedCommand]:
        """Compare a placement in `stimulus` with Fairlead's choice; then apply `stimulus`."""
        expected = ""
        if isinstance(stimulus, ObjectChanged) and isinstance(stimulus.object, Pod):
            expected = self._compare(stimulus.object, now)
        self.cluster.apply(stimulus)
        match stimulus:
            case ObjectChanged(object=Pod() as pod) if expected:
                self._assume(self.cluster.pods[pod.key], expected)
            case ObjectChanged(object=Pod() as pod):
                self._nominate(pod)
            case ObjectDeleted(object=Pod() as pod):
                self._nominator.withdraw(pod.metadata.uid)
            case ObjectsLoaded():
                for info in list(self.cluster.pods.values()):
                    self._take_over(info)
            case _:
                pass
        return ()

    def next_deadline(self) -> Instant | None:
        """Return None, because only stimuli cause work."""
        return None

    def handle_deadline(self, now: Instant) -> Sequence[IssuedCommand]:
        """Return no commands, because a shadow never has a deadline."""
        return ()

    def _take_over(self, pod: PodInfo) -> None:
        """Process the nominated node, if any, of a pod that existed when the shadow started.

        If the scheduler probably binds the pod to this node next (`_is_expected`), assume the pod
        there; otherwise nominate the pod.
        """
        node = pod.pod.status.nominated_node_name
        if node and not pod.pod.spec.node_name and self._is_expected(pod, pod.pod, node):
            self._assume(pod, node)
        else:
            self._nominate(pod.pod)

    def _assume(self, pod: PodInfo, node: str) -> None:
        self._nominator.withdraw(pod.uid)
        self.cluster.assume(pod, node)

    def _nominate(self, pod: Pod) -> None:
        node = pod.status.nominated_node_name
        known = self.cluster.pods.get(pod.key)
        if known is None or not node or self.cluster.node_of(known):
            self._nominator.withdraw(pod.metadata.uid)
        elif self._nominator.node_of(known.uid) != node:
            self._nominator.nominate(known, node)

    # --- comparison ------------------------------------------------------------------------

    def _compare(self, new: Pod, now: Instant) -> str:
        """Compare the placement or nomination of `new` with a decision under each configuration.

        If the pod is newly nominated to the node to which the scheduler will bind it, returns this
        node; otherwise returns "".
        """
        old = self.cluster.pods.get(new.key)
        if old is None or old.uid != new.metadata.uid or old.pod.spec.node_name:
            return ""  # not known before as a pod without a node, so this is no new decision
        if is_terminal(new) or new.metadata.deletion_timestamp:
            return ""
        nominated = new.status.nominated_node_name
        node = new.spec.node_name or nominated
        if self.cluster.is_assumed(old):
            if node == self.cluster.node_of(old):
                return ""  # compared when the pod was nominated
            self.cluster.forget(old)
        if new.spec.node_name:
            self._report_placement(old, node, now)
        elif nominated and nominated != old.pod.status.nominated_node_name:
            if self._is_expected(old, new, node):
                self._report_placement(old, node, now)
                return node
            for one in self._configurations:
                self._on_decision(self._nominated(one, old, node, now))
        return ""

    def _report_placement(self, pod: PodInfo, node: str, now: Instant) -> None:
        for one in self._configurations:
            self._on_decision(self._placed(one, pod, node, now))

    def _is_expected(self, pod: PodInfo, new: Pod, node: str) -> bool:
        """Return whether `new` is nominated to `node` because it will be bound there.

        The only other reason for a nomination is preemption. After a preemption, the scheduler also
        sets the condition that the pod is unschedulable. Therefore the result is True if `new` does
        not have this condition. But the condition may also come from an earlier attempt. Therefore
        the result is also True if the pod fits `node`, because such a pod needs no preemption.

        upstream: pkg/scheduler/schedule_one.go: bindingCycle, handleSchedulingFailure
        """
        if not any(
            (one.type, one.status, one.reason) == (POD_SCHEDULED, "False", UNSCHEDULABLE)
            for one in new.status.conditions
        ):
            return True
        info = self.cluster.table.find(node)
        found = find_nodes_that_fit(_of_scheduler(self._configurations[0].built, pod).plans, pod)
        return info is not None and found.error() is None and found.is_feasible(info)

    def _placed(
        self, configuration: _Configuration, pod: PodInfo, node: str, now: Instant
    ) -> ShadowDecision:
        """Compare the pod's placement on `node` with a decision under `configuration`."""
        built = _of_scheduler(configuration.built, pod)
        scheduler = pod.pod.spec.scheduler_name
        decided = partial(
            replace,
            ShadowDecision(
                now, configuration.name, ShadowAgreement.EQUAL, pod.key, scheduler, node
            ),
        )
        if not self.cluster.table.count:
            return decided(agreement=ShadowAgreement.UNSCHEDULABLE, reason="no nodes are known")
        found = find_nodes_that_fit(built.plans, pod)
        broken = found.error()
        if broken is not None:
            return decided(agreement=ShadowAgreement.ERROR, reason=broken.message)
        feasible = found.count()
        if not feasible:
            evaluation = evaluate(built, pod)
            victims = tuple(evaluation.room.victims) if evaluation.room is not None else ()
            reason = evaluation.fit_error
            return decided(agreement=ShadowAgreement.UNSCHEDULABLE, reason=reason, victims=victims)
        best = self._best(built, pod, found)
        if isinstance(best, Status):
            return decided(agreement=ShadowAgreement.ERROR, reason=best.message)
        decided = partial(
            decided, choices=tuple(best[:CHOICES_MAX]), equals=len(best), feasible=feasible
        )
        if node in best:
            return decided(agreement=ShadowAgreement.EQUAL)
        info = self.cluster.table.find(node)
        if info is None:
            return decided(agreement=ShadowAgreement.INFEASIBLE, reason="the node is not known")
        if not found.is_feasible(info):
            why = found.diagnosis().status_of(info.row)
            return decided(agreement=ShadowAgreement.INFEASIBLE, reason="; ".join(why.reasons))
        totals = self._totals(built, pod, found)
        score, highest = totals.get(node), max(totals.values(), default=None)
        percentage = _of_scheduler(configuration.percentages, pod)
        enough = feasible_nodes_to_find(percentage or ADAPTIVE, self.cluster.table.count)
        not_better = sum(1 for one in totals.values() if score is not None and one <= score)
        agreement = ShadowAgreement.SAMPLED if not_better >= enough else ShadowAgreement.LOWER
        return decided(agreement=agreement, score=score, best_score=highest)

    def _nominated(
        self, configuration: _Configuration, pod: PodInfo, node: str, now: Instant
    ) -> ShadowDecision:
        """Compare the nomination of `node` for the pod with a decision under `configuration`.

        The cluster's scheduler nominated the pod when it preempted other pods. The preemption was
        needless if the pod fits at least one node.
        """
        built = _of_scheduler(configuration.built, pod)
        found = find_nodes_that_fit(built.plans, pod)
        feasible = found.count()
        agreement = ShadowAgreement.NEEDLESS if feasible else ShadowAgreement.PREEMPTED
        best = self._best(built, pod, found) if feasible else []
        names = () if isinstance(best, Status) else tuple(best)
        scheduler = pod.pod.spec.scheduler_name
        return ShadowDecision(
            now,
            configuration.name,
            agreement,
            pod.key,
            scheduler,
            node,
            choices=names[:CHOICES_MAX],
            equals=len(names),
            feasible=feasible,
        )

    def _best(self, built: BuiltProfile, pod: PodInfo, found: Feasibility) -> list[str] | Status:
        """Return the names of the best nodes, from which the scheduler would choose one.

        If the pod has a nominated node that is feasible, returns only this node. Returns a Status
        if a plugin fails.
        """
        nominated = pod.pod.status.nominated_node_name
        info = self.cluster.table.find(nominated) if nominated else None
        if info is not None and found.is_feasible(info):
            return [nominated]
        best = best_positions(built.plans, pod, found)
        if isinstance(best, Status):
            return best
        table, rows = self.cluster.table, found.plan.rows
        return [table.at(int(rows[at])).name for at in best]

    def _totals(self, built: BuiltProfile, pod: PodInfo, found: Feasibility) -> dict[str, int]:
        """Return the total score of each feasible node; {} on an error."""
        ranked = explain_scores(built.plans, pod, found)
        if ranked.error is not None:
            return {}
        table, rows = self.cluster.table, found.plan.rows
        return {
            table.at(int(rows[at])).name: int(total)
            for at, total in zip(ranked.positions, ranked.totals, strict=True)
        }


def _of_scheduler(by_name: Mapping[str, Value], pod: PodInfo) -> Value:
    """Return the value of `by_name` for the pod's scheduler name.

    The keys are the scheduler names of a configuration's profiles. If no profile has the pod's
    scheduler name, returns the value for the first profile.
    """
    return by_name.get(pod.pod.spec.scheduler_name, next(iter(by_name.values())))
