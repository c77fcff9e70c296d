"""schedule_one: the scheduling cycle of one pod, up to the decision.

    1 snapshot    not needed, because the node columns do not change while a cycle decides
    2 filter      find_nodes_that_fit
    3 nominated   if the pod's nominated node fits, choose it without scoring other nodes
    4 sample      limit the number of feasible nodes, if configured
    5 extenders   remove the nodes that extenders reject
    6 score       best_positions, unless only one node is left
    7 select      the tie-break chooses one of the best nodes
    8 post-filter if no node fits: try preemption

There are three shortcuts (`known_decision`):
- If an equal pod has just failed, its failure is the decision (repeated_failure).
- If equal pods have been placed, the best nodes are found without a search, and step 7 chooses one
  of them (repeated_placement).
- In simple cases, the pod's nominated node is evaluated before step 2. If the pod fits there, this
  node is chosen. No other node is evaluated (fitting_nominated_node).

The cycle is suspended while it waits for extenders (`Consultation`). Changes that arrive meanwhile
do not affect the cycle. There is one exception: a deleted node cannot be chosen.
upstream: pkg/scheduler/schedule_one.go: schedulingCycle, schedulePod
"""

from __future__ import annotations

from typing import Final

from fairlead.engine.core.status import Code, Status, error
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.diagnosis import NO_NODES, fit_error
from fairlead.engine.framework.feasibility import Feasibility
from fairlead.engine.framework.user_plugin.meter import FILTERED, SCORED
from fairlead.engine.scheduling.compose import BuiltProfile
from fairlead.engine.scheduling.decision import Decision, Failure, Placement, join_messages
from fairlead.engine.scheduling.extender.consultation import Consultation
from fairlead.engine.scheduling.extender.current_nodes import without_deleted_nodes
from fairlead.engine.scheduling.extender.extender import ExtenderCalls, interested_extenders
from fairlead.engine.scheduling.extender.filter import pass_extenders, passes_extenders
from fairlead.engine.scheduling.extender.prioritize import best_with_extenders
from fairlead.engine.scheduling.feasibility import find_nodes_that_fit
from fairlead.engine.scheduling.nominated_pods import fitting_nominated_node
from fairlead.engine.scheduling.post_filter import run_post_filters
from fairlead.engine.scheduling.prioritization import Positions, best_positions
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.state.pod_info import PodInfo

NODES_GONE: Final = "all feasible nodes were deleted before the extenders answered"


def schedule_one(
    built: BuiltProfile, pod: PodInfo, tie_break: TieBreak, *, runs_post_filter: bool = True
) -> Consultation[Decision]:
    """Decide on a node for `pod`.

    The function changes nothing except the caches and counters in `built` and the counters in
    `tie_break`. If `runs_post_filter` is False, no PostFilter plugin runs.
    """
    known = known_decision(built, pod, tie_break, runs_post_filter=runs_post_filter)
    if known is not None:
        return known
    return (yield from find_decision(built, pod, tie_break, runs_post_filter=runs_post_filter))


def known_decision(
    built: BuiltProfile, pod: PodInfo, tie_break: TieBreak, *, runs_post_filter: bool = True
) -> Decision | None:
    """Begin the cycle of `pod`; return its decision if a shortcut finds it, else None.

    If the result is None, call `find_decision`. The arguments are the same as for `schedule_one`.
    """
    if not built.framework.cluster.table.count:
        return Failure(NO_NODES)
    if built.meter is not None:
        built.meter.begin_steps(pod.ref)
    repeated = built.failures.find(pod) if runs_post_filter and built.failures is not None else None
    if repeated is not None:
        _end_step(built, FILTERED)
        return repeated
    if built.placements is not None:
        placement = built.placements.find(pod, tie_break)
        if placement is not None:
            if built.meter is not None:
                built.meter.end_step(FILTERED)
                if placement.via == "score":
                    built.meter.end_step(SCORED)
            return placement
    if built.is_stateless and pod.pod.status.nominated_node_name:
        nominated = fitting_nominated_node(built.plans, pod)
        if nominated is not None:
            _end_step(built, FILTERED)
            return Placement(*nominated, "nominated", 1, 1)
    return None


def find_decision(
    built: BuiltProfile, pod: PodInfo, tie_break: TieBreak, *, runs_post_filter: bool = True
) -> Consultation[Decision]:
    """Decide on a node for `pod` after `known_decision` has returned None."""
    found = find_nodes_that_fit(built.plans, pod)
    broken = found.error()
    if broken is not None:
        return Failure(broken.message, is_error=True)
    extenders = _extenders(built, pod) if built.extenders else []
    deciding = _decide(built, pod, found, extenders, tie_break, runs_post_filter=runs_post_filter)
    return (yield from without_deleted_nodes(deciding, found) if extenders else deciding)


def _decide(
    built: BuiltProfile,
    pod: PodInfo,
    found: Feasibility,
    extenders: list[ExtenderCalls],
    tie_break: TieBreak,
    *,
    runs_post_filter: bool,
) -> Consultation[Decision]:
    nominated = _nominated(pod, found)
    if nominated is not None and (yield from passes_extenders(extenders, nominated, found)):
        _end_step(built, FILTERED)
        return Placement(nominated, found.state, "nominated", 1, 1)
    if built.sampling is not None:
        built.sampling(found)
    broken = (yield from pass_extenders(extenders, found)) if extenders else None
    if broken is not None:
        return Failure(broken.message, is_error=True)
    feasible = found.count()
    _end_step(built, FILTERED)
    if not feasible and not runs_post_filter:
        diagnosis = found.diagnosis()
        return Failure(fit_error(diagnosis, ""), diagnosis.plugins())
    if not feasible:
        return (yield from _run_post_filter(built, pod, found, extenders))
    if built.placements is not None:
        built.placements.keep(pod, found)
    if feasible == 1:
        return _placement(found, found.positions(), "single", 1, tie_break)
    if extenders:
        best = yield from _best_with_extenders(built, pod, found, extenders)
    else:
        best = best_positions(built.plans, pod, found)
    if isinstance(best, Status):
        return Failure(best.message, is_error=True)
    _end_step(built, SCORED)
    return _placement(found, best, "score", feasible, tie_break)


def _extenders(built: BuiltProfile, pod: PodInfo) -> list[ExtenderCalls]:
    return interested_extenders(built.extenders, pod, built.reporter)


def _end_step(built: BuiltProfile, name: str) -> None:
    if built.meter is not None:
        built.meter.end_step(name)


def _nominated(pod: PodInfo, found: Feasibility) -> NodeInfo | None:
    name = pod.pod.status.nominated_node_name
    node = found.plan.table.find(name) if name else None
    return node if node is not None and found.is_feasible(node) else None


def _placement(
    found: Feasibility, best: Positions, via: str, feasible: int, tie_break: TieBreak
) -> Placement:
    """Return the placement on a node that the tie-break picks from `best`.

    `best` are indexes in `found.plan.rows`.
    """
    plan = found.plan
    chosen = int(best[tie_break.pick(len(best))])
    return Placement(plan.table.at(plan.row(chosen)), found.state, via, feasible, len(best))


def _best_with_extenders(
    built: BuiltProfile, pod: PodInfo, found: Feasibility, extenders: list[ExtenderCalls]
) -> Consultation[Positions | Status]:
    best = yield from best_with_extenders(extenders, built.plans, pod, found)
    return error(NODES_GONE) if not isinstance(best, Status) and not len(best) else best


def _run_post_filter(
    built: BuiltProfile, pod: PodInfo, found: Feasibility, extenders: list[ExtenderCalls]
) -> Consultation[Decision]:
    diagnosis = found.diagnosis()
    outcome = yield from run_post_filters(built.framework, found, pod, diagnosis, extenders)
    rejections = fit_error(diagnosis, "")
    message = join_messages(rejections, outcome.message if built.names_preemption else "")
    result = outcome.result if outcome.status.is_success else None
    failure = Failure(
        message,
        diagnosis.plugins(),
        result,
        outcome.result.nominated_node,
        rejections=rejections,
        commands=outcome.commands,
        post_filter=outcome.message if built.framework.post_filters else None,
        post_filter_failed=outcome.status.code is Code.ERROR,
        state=found.state if result is not None else None,
    )
    if built.failures is not None:
        built.failures.keep(pod, found, failure)
    return failure
