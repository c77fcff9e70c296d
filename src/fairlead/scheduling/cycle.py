"""schedule_one: one pod's scheduling cycle, up to the decision.

    1 snapshot    the columns as they are; nothing changes while a cycle decides
    2 filter      find_nodes_that_fit
    3 nominated   a node promised to the pod is taken without looking at the others
    4 score       best_positions, unless one node is left
    5 select      the tie-break picks among equals
    6 post-filter where no node fits: make room

upstream: pkg/scheduler/schedule_one.go: schedulingCycle, schedulePod
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fairlead.core.status import Status
from fairlead.core.tie_break import TieBreak
from fairlead.framework.cycle_state import CycleState
from fairlead.framework.diagnosis import NO_NODES, fit_error, histogram
from fairlead.framework.interface import PostFilterResult
from fairlead.scheduling.compose import Served
from fairlead.scheduling.feasibility import Feasibility, find_nodes_that_fit
from fairlead.scheduling.post_filter import run_post_filters
from fairlead.scheduling.prioritization import best_positions
from fairlead.state.node_info import NodeInfo
from fairlead.state.pod_info import PodInfo


@dataclass(frozen=True, slots=True)
class Placement:
    """The pod goes to `node`, chosen `via` "nominated", "single" or "score" among `equals`."""

    node: NodeInfo
    state: CycleState
    via: str
    feasible: int
    equals: int


@dataclass(frozen=True, slots=True)
class Failure:
    """The pod goes nowhere; `rejections` is the part of the message that counts the nodes.

    `plugins` rejected it. `room` is what a PostFilter found: its victims and nomination.
    `is_error` tells a failure of ours from a verdict on the pod.
    """

    message: str
    plugins: tuple[str, ...] = ()
    room: PostFilterResult | None = None
    nominated_node: str | None = ""
    is_error: bool = False
    rejections: str = ""


def vanished(pod: PodInfo, failure: Failure) -> Failure:
    """`failure`, where the pod was deleted while its cycle went on: preemption does not find it.

    upstream: framework/preemption/preemption.go: Preempt
    """
    if not failure.rejections:
        return failure
    message = f'{failure.rejections} preemption: pod "{pod.pod.metadata.name}" not found'
    return replace(failure, message=message, room=None, nominated_node=None)


def refusal(status: Status) -> Failure:
    """A placement that a plugin refused: to users, that one node did not take the pod."""
    if not status.is_rejected:
        return Failure(status.message, is_error=True)
    return Failure(f"0/1 nodes are available:{histogram(iter([(status, 1)]))}", (status.plugin,))


def schedule_one(served: Served, pod: PodInfo, tie_break: TieBreak) -> Placement | Failure:
    """Decide about `pod`; changes nothing but the tie-break's count."""
    if not served.framework.cluster.table.count:
        return Failure(NO_NODES)
    found = find_nodes_that_fit(served.plans, pod)
    error = found.error()
    if error is not None:
        return Failure(error.message, is_error=True)
    feasible = found.count()
    if not feasible:
        return _make_room(served, pod, found)
    nominated = _nominated(pod, found)
    if nominated is not None:
        return Placement(nominated, found.state, "nominated", 1, 1)
    return _select(served, pod, found, feasible, tie_break)


def _nominated(pod: PodInfo, found: Feasibility) -> NodeInfo | None:
    name = pod.pod.status.nominated_node_name
    node = found.plan.table.find(name) if name else None
    return node if node is not None and found.is_feasible(node) else None


def _select(
    served: Served, pod: PodInfo, found: Feasibility, feasible: int, tie_break: TieBreak
) -> Placement | Failure:
    plan = found.plan
    if feasible == 1:
        best, via = found.positions(), "single"
    else:
        answer = best_positions(served.plans, pod, found)
        if isinstance(answer, Status):
            return Failure(answer.message, is_error=True)
        best, via = answer, "score"
    chosen = int(plan.rows[best[tie_break.pick(len(best))]])
    return Placement(plan.table.at(chosen), found.state, via, feasible, len(best))


def _make_room(served: Served, pod: PodInfo, found: Feasibility) -> Failure:
    diagnosis = found.diagnosis()
    outcome = run_post_filters(served.framework, found, pod, diagnosis)
    message = fit_error(diagnosis, outcome.message)
    room = outcome.result if outcome.status.is_success else None
    return Failure(
        message,
        diagnosis.plugins(),
        room,
        outcome.result.nominated_node,
        rejections=fit_error(diagnosis, ""),
    )
