"""drain-plan: the blocked nodes; for the other nodes, the drain order, a safe pace and the time.

    1  rules      A node is blocked if a budget refuses an eviction from it, if its kubelet does
                  not answer, or if a terminating pod stays on it forever.
    2  placement  The selected nodes that no rule blocks are cordoned together and emptied one after
                  another. A node whose pods find no place is blocked and stays in service. If
                  drained nodes return, each node is emptied alone, with all other nodes in service.
                  Pods that fit no other node then wait until their node returns. Nodes that a rule
                  blocks are emptied alone afterwards. This shows whether their pods fit elsewhere,
                  and whether they fit only in a certain order.
    3  runs       The drains are simulated with 1, 2, 4, ... nodes at a time, up to the first run
                  that is not safe. The fastest safe run is the best pace.

The pods of some nodes must be placed in a certain order (`DrainPlanner.reorders`). If no run is
safe, steps 2 and 3 are repeated without these nodes.

The plan has the order of step 2. Nodes are sorted by the number of evictions that budgets limit,
then by the number of pods (the lowest number first), then by name. Pods of other nodes may have
taken the room of a blocked node's pods. So orders that begin with the blocked nodes are tried. The
plan uses the order in which the most nodes can be drained.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress, cycle, islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Pod
from fairlead.api.pods.facts import is_terminal
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.admission.quota.resource_quota import QuotaExcess
from fairlead.engine.core.instant import DurationNs, Instant, seconds
from fairlead.engine.kubelet.pod_lifecycle import granted_grace
from fairlead.engine.state.pod_info import PodInfo
from fairlead.whatif.change.kubectl_drain import FORCE, DrainFlag, needed_flags
from fairlead.whatif.change.rolling_drain import nodes_at_once
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.workload import WorkloadRef, workload_of
from fairlead.whatif.planner.cluster_model import Changes, ClusterModel, moves_with_drain
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node.drain_exemption import drain_exemption
from fairlead.whatif.planner.node.node_copy import copy_node
from fairlead.whatif.planner.node_drain.blocker_table import (
    blocker_tables,
    few_or_count,
    no_change_findings,
)
from fairlead.whatif.planner.node_drain.drain_command import drain_steps
from fairlead.whatif.planner.node_drain.drain_planner import (
    UNPLACED,
    BlockCause,
    Blocker,
    DrainPlanner,
    PlannedDrain,
    first_in_words,
)
from fairlead.whatif.planner.node_drain.drain_run import (
    DrainPace,
    DrainRound,
    DrainRun,
    pace_seconds,
    run_drains,
)
from fairlead.whatif.planner.node_drain.unplaced_pod import new_node_edit, unplaced_blockers
from fairlead.whatif.planner.waiting_pods import place_waiting_pods
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.snapshot import PLACEHOLDER

_ORDERS_MAX: Final = 4  # number of orders of the nodes; in each, all pods are placed
_ORDERED_MAX: Final = 16  # so many names of nodes take two or three lines
_NAMED_MAX: Final = 5  # number of nodes that a proposed command names
_REASONS_NAMED_MAX: Final = 3  # number of reasons why pods are refused, each with a sentence
_ORDERS_NAMED_MAX: Final = 3  # number of orders of evictions, each with a sentence of its own
_GRACE_MAX: Final = seconds(600)  # longer times to stop are named in an answer
# How many new nodes are tried in addition to one for each blocked node. More may be needed, because
# pods that are pending already can take room on the new nodes.
_MORE_NODES: Final = (0, 2, 4)
PACES: Final = (1, 2, 4, 8, 16, 32)


class NewNodesTrial(Struct, frozen=True):
    """The best trial of new nodes for `nodes`, the nodes whose pods have no room elsewhere.

    The trial had `count` new nodes, copies of the nodes in `copied`. With these new nodes, the
    nodes in `drained` can be drained.
    """

    nodes: tuple[str, ...]
    copied: tuple[str, ...]
    count: int
    drained: tuple[str, ...]

    @property
    def is_enough(self) -> bool:
        """Whether all of the nodes can be drained with all of the new nodes."""
        return len(self.drained) == len(self.nodes)


class DrainPlan(Struct):
    """The `drains` in order, the `blockers` of all other nodes, and the simulated `runs`.

    The function `completed` sets `flags`, `blocked_flags`, `to_cordon`, `slow`, `refused` and
    `snapshot`.
    """

    nodes: tuple[str, ...]  # the selected nodes that are not exempt from drains
    drains: list[PlannedDrain] = field(default_factory=list)
    blockers: list[Blocker] = field(default_factory=list)
    runs: list[DrainRun] = field(default_factory=list)  # one for each pace that was simulated
    flags: tuple[DrainFlag, ...] = ()  # the flags that kubectl needs for the `drains`
    blocked_flags: tuple[DrainFlag, ...] = ()  # the flags that kubectl needs for blocked nodes
    to_cordon: tuple[str, ...] = ()  # the nodes of the `drains` that are not cordoned yet
    # For each workload whose pods take long to stop, the longest time that a pod takes.
    slow: Mapping[str, DurationNs] = field(default_factory=dict)
    snapshot: str = PLACEHOLDER  # the words that name the snapshot in a command
    # {(workload, reason): the pods on the selected nodes whose replacements the API server refuses}
    refused: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    is_after_change: bool = False  # whether the plan begins after a change that the user asks for
    # {selected node that is exempt from drains: the reason}
    left_out: dict[str, str] = field(default_factory=dict)
    # The blocked nodes that could be drained alone, with all other nodes in service.
    alone: tuple[str, ...] = ()
    # Nodes that no single change unblocks, but that could be drained if they returned to the
    # cluster afterwards. The pods of such a node would wait until the node returns.
    returnable: list[str] = field(default_factory=list)
    # The run of an upgrade at a faster pace than the pace of `runs`; None if no faster pace was
    # simulated.
    faster: DrainRun | None = None
    # A trial for the nodes of `unplaced`; None if there was no trial.
    new_nodes: NewNodesTrial | None = None

    @property
    def best(self) -> DrainRun | None:
        """The fastest safe run; of equally fast runs, the run with the fewest nodes at once.

        None if no run is safe.
        """
        safe = [run for run in self.runs if run.is_safe and run.took is not None]
        return min(safe, key=lambda run: (run.took or 0, run.pace.max_unavailable), default=None)

    @property
    def is_order_unsafe(self) -> bool:
        """Whether all simulated runs are unsafe, and a drain must evict certain pods first.

        This order of evictions may be why the runs are unsafe. `PlannedDrain.first` names the
        workloads of these pods. False if no run was simulated.
        """
        return bool(self.runs) and self.best is None and any(one.first for one in self.drains)

    @property
    def lacks_room(self) -> bool:
        """Whether pods of the drained nodes fit on no other node, so that new nodes would help."""
        is_pending = any(run.pending or run.pending_negative for run in self.runs)
        unplaced = any(one.cause in (*UNPLACED, BlockCause.ORDER) for one in self.blockers)
        return (
            is_pending
            or unplaced
            or any(drain.waits or drain.pending or drain.preempted for drain in self.drains)
        )

    @property
    def blocked(self) -> list[str]:
        """The nodes that cannot be drained."""
        return list(dict.fromkeys(one.node for one in self.blockers))

    @property
    def unplaced(self) -> list[str]:
        """The blocked nodes whose only obstacle is that pods fit on no other node."""
        others = {one.node for one in self.blockers if one.cause not in UNPLACED}
        return [name for name in self.blocked if name not in others]


def begun_plan(model: ClusterModel, nodes: Sequence[str], source: str) -> DrainPlan:
    """Return a plan, still without drains, for the `nodes` that are not exempt from drains.

    `drain_exemption` decides which nodes are exempt. `source` is the option or the dump that names
    the nodes. Raises InputError, with `source` in its message, if all of `nodes` are exempt.
    """
    exempt = {name: drain_exemption(model.node(name).node) for name in nodes}
    left_out = {name: why for name, why in exempt.items() if why}
    for name, why in left_out.items():
        if len(left_out) == len(exempt):
            raise InputError(source, f"no node is left to drain; {name}: {why}")
    return DrainPlan(tuple(name for name in nodes if not exempt[name]), left_out=left_out)


def plan_drains(
    planner: DrainPlanner, nodes: Sequence[str], progress: Progress, *, return_again: bool = False
) -> DrainPlan:
    """Return the plan for draining `nodes`; the model is unchanged afterwards.

    The drained nodes stay out of service, unless `return_again` is set. Raises InputError for the
    option --nodes if all `nodes` are exempt from drains (`begun_plan`).
    """
    start, order = _start_and_order(planner, nodes)
    if return_again:
        return _planned_with_return(planner, start, order, progress)
    plan = _planned(planner, start, _best_trial(planner, order, progress), progress)
    if len(plan.drains) == len(order):
        return plan
    tried = set(order)
    unplaced = [name for name in plan.blocked if name in tried]
    plan.alone = tuple(_drainable_alone(planner, unplaced, return_again=False))
    unhelped = {one.node for one in plan.blockers if not one.edit}
    unhelped_names = [name for name in unplaced if name in unhelped]
    plan.returnable = list(_drainable_alone(planner, unhelped_names, return_again=True))
    plan.new_nodes = _new_nodes_trial(planner, plan, order, progress)
    return plan


def placed_drains(planner: DrainPlanner, nodes: Sequence[str], progress: Progress) -> DrainPlan:
    """Return the plan of `plan_drains` without the fields about what would help blocked nodes."""
    start, order = _start_and_order(planner, nodes)
    return _planned(planner, start, _best_trial(planner, order, progress), progress)


def _start_and_order(planner: DrainPlanner, nodes: Sequence[str]) -> tuple[DrainPlan, list[str]]:
    """Return a plan for `nodes`, and the order in which the nodes without blockers are drained.

    The plan has the blockers of `refusals`. The order is by `drain_effort`.
    """
    start = begun_plan(planner.model, nodes, "--nodes")
    for name in start.nodes:
        start.blockers += planner.refusals(name)
    refused = set(start.blocked)
    order = [name for name in start.nodes if name not in refused]
    return start, sorted(order, key=lambda name: drain_effort(planner, name))


def _new_nodes_trial(
    planner: DrainPlanner, plan: DrainPlan, order: Sequence[str], progress: Progress
) -> NewNodesTrial | None:
    """Try new nodes, which are copies of the nodes in `plan.unplaced`, all at the same time.

    The nodes of `plan.unplaced` and `plan.drains` are emptied in `order`. If new nodes help only
    some of the nodes in `plan.unplaced`, copies of only the helped nodes are tried, too. Return
    None if `plan.unplaced` is empty, or has only one node, for which a new node is already
    suggested.
    """
    nodes = tuple(sorted(set(plan.unplaced).intersection(order)))
    edits = {one.edit for one in plan.blockers if one.node in nodes}
    if not nodes or (len(nodes) == 1 and edits == {new_node_edit(nodes[0])}):
        return None
    wanted = {*nodes, *(drain.node for drain in plan.drains)}
    order = [name for name in order if name in wanted]
    trials = list[NewNodesTrial]()
    for more in _MORE_NODES:
        count = len(nodes) + more
        changes = _tried_with(planner, nodes, count, order, progress).changes
        drained = tuple(name for name in nodes if name in changes)
        trials.append(NewNodesTrial(nodes, nodes, count, drained))
        if len(changes) == len(order):
            return trials[-1]
    best = max(trials, key=lambda one: (len(one.drained), -one.count))
    if best.drained and not best.is_enough:
        copied = best.drained
        changes = _tried_with(planner, copied, len(copied), order, progress).changes
        if all(name in changes for name in copied):
            drained = tuple(name for name in nodes if name in changes)
            return NewNodesTrial(nodes, copied, len(copied), drained)
    return best


def _tried_with(
    planner: DrainPlanner,
    copied: Sequence[str],
    count: int,
    order: Sequence[str],
    progress: Progress,
) -> _Trial:
    """Do the same as `_tried` in a cluster with `count` more nodes, copies of those in `copied`."""
    model = planner.model
    progress.begin("trying new nodes", len(order))
    with model.hypothesis():
        for number, name in enumerate(islice(cycle(copied), count)):
            copy_node(model, model.node(name), f"{name}-copy-{number}").add_to(model)
        place_waiting_pods(model)
        return _tried(planner, order, progress)


def _drainable_alone(
    planner: DrainPlanner, names: Sequence[str], *, return_again: bool
) -> Iterator[str]:
    """Yield the nodes in `names` that can be drained while all other nodes stay in service."""

    def check(name: str) -> bool:
        return isinstance(planner.drained_alone(name, return_again=return_again), PlannedDrain)

    return compress(names, independent_checks(planner.model, check, names))


def _planned_with_return(
    planner: DrainPlanner, start: DrainPlan, order: Sequence[str], progress: Progress
) -> DrainPlan:
    """Drain each node in `order` by itself, and return `start` with the drains and the blockers.

    A drained node returns to the cluster. The nodes in `start.blocked` get blockers, but no drain.
    """
    plan = DrainPlan(start.nodes, blockers=list(start.blockers), left_out=start.left_out)

    def check(name: str) -> tuple[list[PlannedDrain], list[Blocker]]:
        drained = planner.drained_alone(name, return_again=True)
        if isinstance(drained, Blocker):
            return [], list(unplaced_blockers(planner, drained, returns=True))
        return [drained], []

    progress.begin("placing pods", len(order))
    checks = independent_checks(planner.model, check, (*order, *start.blocked))
    for number, (drained, blockers) in enumerate(checks):
        progress.reach(min(number, len(order)), 0)
        plan.blockers += blockers
        if number < len(order):
            plan.drains += drained
    return completed(plan, planner)


def _planned(
    planner: DrainPlanner, start: DrainPlan, trial: _Trial, progress: Progress
) -> DrainPlan:
    """Return `start` with the drains that `trial` found, and with the blockers of other nodes.

    The blockers of a node are determined in the state after all drains. In this state, it may be
    possible to empty the node, because other blocked nodes are in service again. If so, the
    blockers are determined in the state in which the trial could not empty the node.
    """
    plan = DrainPlan(start.nodes, blockers=list(start.blockers), left_out=start.left_out)
    failed = [name for name, found in trial.found.items() if not isinstance(found, PlannedDrain)]
    plan.drains = [found for found in trial.found.values() if isinstance(found, PlannedDrain)]
    progress.begin("placing pods", len(failed))
    blockers = dict[str, list[Blocker]]()
    with _after_trial(planner, trial, None):
        for number, name in enumerate(failed):
            progress.reach(number, 0)
            drained = planner.drained_alone(name, return_again=False)
            if isinstance(drained, Blocker):
                blockers[name] = list(unplaced_blockers(planner, drained))
        for name in start.blocked:
            # If these pods fit only in another order, this order is one more obstacle to the drain.
            drained = planner.drained_alone(name, return_again=False, reorders=False)
            if isinstance(drained, Blocker):
                blockers[name] = list(unplaced_blockers(planner, drained))
    for name in failed:
        if name not in blockers:
            with _after_trial(planner, trial, name):
                # A user's plugin with a state of its own can decide otherwise than in the trial.
                drained = trial.found[name] or planner.empty(name)
                if isinstance(drained, PlannedDrain):
                    plan.drains.append(drained)
                else:
                    blockers[name] = list(unplaced_blockers(planner, drained))
    plan.blockers += [one for name in (*failed, *start.blocked) for one in blockers.get(name, ())]
    return completed(plan, planner)


@contextmanager
def _after_trial(planner: DrainPlanner, trial: _Trial, until: str | None) -> Iterator[None]:
    """Repeat the drains of `trial` in the model until the `with` block ends.

    If `until` is the name of a node, only the drains before the trial of this node are repeated.
    """
    model = planner.model
    with model.hypothesis():
        before = {name: model.node(name).node for name in trial.found}
        for name in trial.found:
            planner.close(name)
        for name, found in trial.found.items():
            if name == until:
                break
            if isinstance(found, PlannedDrain):
                model.repeat(trial.changes[name])
            else:
                model.put_node(before[name])
        yield


def completed(plan: DrainPlan, planner: DrainPlanner) -> DrainPlan:
    """Set the fields of `plan` that follow from `plan.drains`, and return `plan`.

    In the model of `planner`, no drain has happened yet: all pods are on their original nodes.
    """
    model = planner.model
    for name in plan.nodes:
        evicted = planner.evicted(name)
        for key, why in planner.refused(evicted).items():
            owner = next(str(workload_of(pod.pod)) for pod in evicted if pod.key == key)
            plan.refused.setdefault((owner, why), []).append(key)
    names = [drain.node for drain in plan.drains]
    plan.to_cordon = tuple(name for name in names if not model.node(name).node.spec.unschedulable)
    # Sorted, because the order of a node's pods depends on the hypotheses that have removed pods.
    pods = [
        pod
        for name in names
        for pod in sorted(model.node(name).pods.values(), key=lambda pod: pod.key)
    ]
    plan.snapshot = model.snapshot_words
    # The pods of a node in the model do not include its finished pods.
    finished = [one for one in model.objects if isinstance(one, Pod) and is_terminal(one)]
    plan.flags = _flags_of(names, pods, finished)
    blocked = [name for name in plan.blocked if name not in names]
    others = [pod for name in blocked for pod in model.node(name).pods.values()]
    plan.blocked_flags = _flags_of(blocked, others, finished)
    plan.slow = _slow(pods, model.now)
    return plan


def _flags_of(
    nodes: Collection[str], pods: Iterable[PodInfo], finished: Iterable[Pod]
) -> tuple[DrainFlag, ...]:
    """Return the flags that kubectl needs for the `pods` of `nodes` and their `finished` pods."""
    own = (one for one in finished if one.spec.node_name in nodes)
    return needed_flags((*(pod.pod for pod in pods), *own))


def _slow(pods: Iterable[PodInfo], now: Instant) -> dict[str, DurationNs]:
    """Return, by workload, the longest time that one of `pods` takes to stop after an eviction.

    This is the grace period of the pod, or what remains of it at `now`. Workloads whose pods take
    at most _GRACE_MAX are left out.
    """
    found: dict[str, DurationNs] = {}
    for pod in filter(moves_with_drain, pods):
        grace = granted_grace(pod.pod)
        if pod.terminating:
            grace = parse_timestamp(pod.pod.metadata.deletion_timestamp) - now
        if grace > _GRACE_MAX:
            workload = str(workload_of(pod.pod))
            found[workload] = max(found.get(workload, 0), grace)
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


class _Trial(Struct, frozen=True):
    """The results of emptying nodes one after another, in one order.

    `found` has the result of `try_empty` for each node, in this order. `changes` has the changes of
    the model for each node that was emptied. The search for the blockers of a node needs the
    earlier state of the model, in which `try_empty` was called for the node. To reach this state,
    the search repeats the changes, which takes much less time than placing the pods again.
    """

    found: dict[str, PlannedDrain | Blocker | None]
    changes: dict[str, Changes]


def _best_trial(planner: DrainPlanner, order: list[str], progress: Progress) -> _Trial:
    """Try `order` and a few other orders; return the trial that empties the most nodes.

    Each further order begins with the nodes that could not be emptied in the previous order.
    """
    progress.begin("placing pods", len(order))
    best = last = _tried(planner, order, progress)
    tried = [order]
    while len(best.changes) < len(order) and len(tried) < _ORDERS_MAX:
        order = sorted(order, key=last.changes.__contains__)
        if order in tried:
            break
        tried.append(order)
        progress.begin("trying another order", len(order))
        last = _tried(planner, order, progress)
        if len(last.changes) > len(best.changes):
            best = last
    return best


def _tried(planner: DrainPlanner, order: Sequence[str], progress: Progress) -> _Trial:
    """Try to empty the nodes one after another, in `order`, and return the results.

    At the end, all changes of the model are reverted.
    """
    model, trial = planner.model, _Trial({}, {})
    with model.hypothesis():
        before = {name: model.node(name).node for name in order}
        for name in order:
            planner.close(name)
        for number, name in enumerate(order):
            progress.reach(number, 0)
            with model.hypothesis() as supposed:
                trial.found[name] = planner.try_empty(name)
                if isinstance(trial.found[name], PlannedDrain):
                    trial.changes[name] = model.changes_since(supposed)
                    supposed.commit()
            if name not in trial.changes:
                model.put_node(before[name])
    return trial


def drain_effort(planner: DrainPlanner, name: str) -> tuple[int, int, str]:
    """Return the sort key of a node: (evictions that budgets limit, all evictions, name)."""
    pods = planner.evicted(name)
    limited = sum(bool(planner.budgets.guarding(pod.pod)) for pod in pods)
    return limited, len(pods), name


def run_plan(  # noqa: PLR0913 - the drains, and how they are simulated and judged
    plan: DrainPlan,
    experiment: Experiment,
    progress: Progress,
    *,
    max_unavailable: int | str | None = None,
    away: DurationNs | None = None,
    rounds: Sequence[DrainRound] = (),
    ignores_negative: bool = True,
) -> None:
    """Simulate the drains of `plan` and set `plan.runs`; do nothing if no node can be drained.

    Each pace of `paces_for` is simulated, up to the first pace that is not safe. Each node returns
    to service after the time `away`; None means never. `rounds` contain the nodes to drain; by
    default, all nodes are in one round. `ignores_negative` is as in `run_drains`. Raises InputError
    if `experiment` cannot be run.
    """
    names = tuple(drain.node for drain in plan.drains)
    if names:
        rounds = rounds or [DrainRound(names)]
        paces = paces_for(max(len(one.nodes) for one in rounds), max_unavailable, away)
        # The drain controller does not evict the pods in the order that some drains need.
        first_alone = any(drain.first for drain in plan.drains)
        plan.runs = run_drains(
            experiment,
            rounds,
            paces,
            progress,
            first_alone=first_alone,
            ignores_negative=ignores_negative,
        )


def paces_for(
    nodes: int, max_unavailable: int | str | None, away: DurationNs | None
) -> list[DrainPace]:
    """Return the paces to try: how many nodes of a round are drained at a time.

    A round has at most `nodes` nodes. Each node is out of service for the time `away`. If
    `max_unavailable` is set, it is the only pace. `max_unavailable` is a number, or a percentage of
    the nodes of a round (`nodes_at_once`). If it is None, the paces are 1 and the numbers in
    `PACES` that are smaller than `nodes`.
    """
    if isinstance(max_unavailable, str):
        return [DrainPace(nodes_at_once(max_unavailable, nodes), away, max_unavailable)]
    if max_unavailable is not None:
        return [DrainPace(max_unavailable, away)]
    return [DrainPace(count, away) for count in PACES if count == 1 or count < nodes]


# --- the answer -------------------------------------------------------------------------------


def drain_answer(
    plan: DrainPlan, source: str, notes: tuple[str, ...], stops: ResultTable | None = None
) -> TabularAnswer:
    """Return the answer of `fairlead drain-plan`.

    If no pace is safe, `stops` is a table of the workloads that stop (`stop_table`). The answer is
    "no" if a node is blocked, or if no pace is safe.
    """
    best, order = plan.best, [drain.node for drain in plan.drains]
    facts: Json = {
        "nodes": list(plan.nodes),
        "drainable": len(plan.drains),
        "blocked": plan.blocked,
        "drainable_alone": list(plan.alone),
        "left_out": plan.left_out,
        "at_once": None if best is None else best.pace.max_unavailable,
        "takes_s": None if best is None else pace_seconds(best.took),
        "kubectl_flags": {one.flag: list(one.pods) for one in plan.flags},
    }
    tables = (
        *blocker_tables(plan.blockers),
        pace_table(plan.runs),
        *(() if stops is None else (stops,)),
        pending_table(plan.runs),
        *run_tables(best or next(iter(plan.runs), None)),
        wait_table(plan),
        _order(plan),
        _moves(plan),
    )
    findings = (
        *safe_findings(best),
        *single_findings(stopped_by(best)),
        *negative_findings(best or next(iter(plan.runs), None)),
        *image_findings(best),
        *_alone_findings(plan),
        *left_out_findings(plan),
        *_pace_findings(plan),
        *quota_findings(plan),
        *refusal_findings(plan),
        *wait_findings(plan),
        *_unplaced_findings(plan),
        *_new_node_findings(plan.new_nodes),
        *no_change_findings(plan.blockers),
        *_return_findings(plan.returnable),
        *order_findings(plan.drains),
        *command_findings(plan),
    )
    return TabularAnswer(
        "DrainPlan",
        source,
        _verdict(plan),
        findings,
        tables,
        facts,
        notes,
        is_no=bool(plan.blockers) or best is None,
        steps=tuple(plan_steps(plan, order)),
    )


def plan_steps(plan: DrainPlan, order: Sequence[str]) -> Iterator[NextStep]:
    """Yield the commands that drain the nodes of `plan` in the given order.

    If a change must come before the plan, the text of the first command says so.
    """
    steps = drain_steps(order, plan.drains, plan.to_cordon, plan.flags, plan.best)
    for number, one in enumerate(steps):
        is_first = plan.is_after_change and number == 0
        yield replace(one, words=f"after the change, {one.words}") if is_first else one


def _verdict(plan: DrainPlan) -> str:
    total, count, best = len(plan.nodes), len(plan.drains), plan.best
    blocked = len(plan.blocked)
    if not count:
        which = (
            f"None of {counted(total, 'node')} can be drained"
            if total > 1
            else f"{plan.nodes[0]} cannot be drained"
        )
        if plan.unplaced == plan.blocked:
            which += " without leaving pods pending"
        owners = blocking_owners(plan)
        return f"{which}: blocked by {owners}." if owners else f"{which}."
    which = "All nodes" if not blocked and total > 1 else f"{count:,} of {counted(total, 'node')}"
    if total == 1:
        which = plan.nodes[0]
    rest = f"; {blocked:,} {'is' if blocked == 1 else 'are'} blocked" if blocked else ""
    if best is None:
        if any(run.unfinished for run in plan.runs[:1]):
            drained = "all nodes" if which == "All nodes" else which
            return f"The drain of {drained} does not complete{rest}."
        return f"{which} can be drained, but not safely{rest}."
    pace = "" if total == 1 else f", {best.pace.words}"
    takes = f"{for_readers(best.took or 0)}{pace}"
    return f"{which} can be drained in {takes}{image_reservation(best)}{rest}."


def blocking_owners(plan: DrainPlan) -> str:
    """Return text that names the owners with the most blockers; "" if there are no blockers."""
    owners = Counter(one.owner for one in plan.blockers if one.owner)
    return listed(sorted(owners, key=lambda owner: (-owners[owner], owner)), 2)


def _alone_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield a sentence if some blocked nodes could be drained while all other nodes stay.

    The sentence explains that "blocked" refers to a drain of all selected nodes.
    """
    if plan.alone:
        count, total = len(plan.alone), len(plan.blocked)
        which = "the blocked node" if total == 1 else f"{count:,} of the {total:,} blocked nodes"
        which = f"each of the {total:,} blocked nodes" if count == total > 1 else which
        yield (
            '"Blocked" assumes that the other nodes are removed too. Budgets and room would allow '
            f"a drain of {which} alone (fairlead drain-plan without --nodes)."
        )


def left_out_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield, for each reason to leave out selected nodes, a sentence that names these nodes."""
    for why in dict.fromkeys(plan.left_out.values()):
        names = [name for name, one in plan.left_out.items() if one == why]
        yield f"{listed(names)} {'is' if len(names) == 1 else 'are'} left out: {why}."


def _pace_findings(plan: DrainPlan) -> list[str]:
    found = [*_again_findings(plan.best), *unsafe_findings(plan.runs)]
    if len(plan.drains) > 1 and all(run.pace.away is None for run in plan.runs):
        found += _cordon_finding(plan)
    return found


def _again_findings(run: DrainRun | None) -> Iterator[str]:
    """If `run` evicts some pods more than once, yield a sentence that explains why."""
    if run is not None and run.evicted_again:
        is_one = run.evicted_again == 1
        pods = "is the second eviction of a pod" if is_one else "are further evictions of pods"
        yield (
            f"{run.evicted_again:,} of the {run.evicted:,} evictions {pods} that moved to a node "
            "that is drained later."
        )


def _cordon_finding(plan: DrainPlan) -> Iterator[str]:
    """Yield a sentence that says which nodes to cordon before the first drain.

    If some of the selected nodes are blocked, the sentence also says which nodes to drain, and in
    which order. Blocked nodes are not cordoned, because evicted pods may fit no other node. Yield
    nothing if no node is blocked and all nodes are cordoned already.
    """
    is_all = len(plan.drains) == len(plan.nodes)
    these = f"only these {len(plan.drains):,} nodes"
    if not plan.to_cordon:
        if not is_all:
            yield f"Drain {these} {in_order(plan.drains)}."
        return
    which = "all of them" if is_all else these
    others = len(plan.drains) - len(plan.to_cordon)
    if others:
        cordoned = "1 is" if others == 1 else f"{others:,} are"
        which = f"{listed(plan.to_cordon)} ({cordoned} cordoned already)"
    them = these if others else "them"
    then = "" if is_all else f"; then drain {them} {in_order(plan.drains)}"
    yield f"First cordon {which}, so that no pod moves twice{then}."


def quota_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield a sentence with a what-if command whose answer proposes higher quota limits.

    The sentence is yielded only if the plan has no safe run, and a quota refuses new pods. If the
    plan drains many nodes, the command drains only the first node with pods that are refused.
    """
    missing = (one for run in plan.runs for one in run.uncreated)
    refused = {str(one.workload) for one in missing if QuotaExcess.read(one.why)}
    drains = plan.drains
    if len(drains) > _NAMED_MAX:
        pods = {pod for (owner, _), own in plan.refused.items() if owner in refused for pod in own}
        evicting = (
            one
            for one in drains
            if not pods.isdisjoint(one.refused)
            or any(move.workload in refused for move in one.moves)
        )
        drains = list(islice(evicting, 1))
    if plan.best is None and refused and drains:
        options = shlex.join(word for one in drains for word in ("--drain", one.node))
        command = f"fairlead whatif {plan.snapshot} {options}"
        yield f"{command} proposes limits with which the quota admits the pods."


def refusal_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield sentences about the pods whose replacements the API server would refuse.

    For each simulated run, the first workload whose pods are not created again is left out, and so
    are all workloads with the same reason. The text of `unsafe_because` names this reason already.
    """
    known = [one for run in plan.runs for one in run.uncreated[:1]]
    owners, reasons = {str(one.workload) for one in known}, {one.reason for one in known}
    pods = Counter[str]()
    by_reason: dict[str, list[str]] = {}
    for (owner, why), refused in sorted(plan.refused.items()):
        if owner not in owners and why not in reasons:
            by_reason.setdefault(why, []).append(owner)
            pods[why] += len(refused)
    for why, found in islice(by_reason.items(), _REASONS_NAMED_MAX):
        them, replacements = ("it", "its replacement")
        if pods[why] > 1:
            them, replacements = ("them", "their replacements")
        yield (
            f"Do not evict {counted(pods[why], 'pod')} of {_owners(found)} yet: the API server "
            f"would refuse {replacements}, so nothing would create {them} again ({why})."
        )
    rest = list(islice(by_reason.values(), _REASONS_NAMED_MAX, None))
    if rest:
        others = counted(sum(map(len, rest)), "other workload")
        yield f"Pods of {others} would not be created again either, for other reasons."


def in_order(drains: Sequence[PlannedDrain]) -> str:
    """Return words such as `in this order: a, b`; at most `_ORDERED_MAX` nodes are named."""
    return f"in this order: {listed([drain.node for drain in drains], _ORDERED_MAX)}"


def safe_findings(run: DrainRun | None) -> Iterator[str]:
    """Yield a sentence that says what a safe `run` guarantees; nothing if the run evicts no pod."""
    if run is not None and run.is_safe and run.evicted:
        which = "every workload with several replicas" if run.stopped else "every workload"
        exceptions = ["those whose pods end by themselves (such as Jobs)"] if run.stops_jobs else []
        exceptions += ["those with a negative priority"] if run.stops_negative else []
        if exceptions:
            which += f", except {' and '.join(exceptions)},"
        others = ", except pods with a negative priority" if run.pending_negative else ""
        again = f" After them, every evicted pod of a workload runs again{others}."
        if run.image_notes:
            again = ""
        yield (
            f"During the drains, {which} keeps a ready pod and no disruption budget is breached."
            f"{again}"
        )


def stopped_by(run: DrainRun | None) -> list[tuple[WorkloadRef, int]]:
    """Return (workload, number of wanted pods) for each workload that stops in `run`.

    A workload stops if it has no ready pod for a time.
    """
    return [] if run is None else [(one.workload, one.wanted) for one in run.stopped]


def single_findings(stops: Iterable[tuple[WorkloadRef, int]]) -> Iterator[str]:
    """Yield a sentence about the workloads that stop because they have only one replica.

    `stops` contains each workload that has no ready pod for a time, and its number of replicas.
    Nothing is yielded if each of these workloads has several replicas.
    """
    single = [str(workload) for workload, wanted in stops if wanted == 1]
    if single:
        have, its = ("has", "its pod moves") if len(single) == 1 else ("have", "their pods move")
        yield f"{listed(single)} {have} one replica and will stop while {its}."


def negative_findings(run: DrainRun | None) -> Iterator[str]:
    """Yield a sentence if pods with a negative priority are pending at the end of `run`."""
    if run is not None and run.pending_negative:
        count = len(run.pending_negative)
        verb, they, exist = ("is", "it", "exists") if count == 1 else ("are", "they", "exist")
        yield (
            f"{counted(count, 'pod')} with a negative priority {verb} pending at the end; {they} "
            f"{exist} to give way to other pods."
        )


def image_reservation(run: DrainRun) -> str:
    """Return the clause about images for the end of a verdict; "" if `run` has no image notes."""
    if not run.image_notes:
        return ""
    return ", but images of evicted pods might not run on the pods' new nodes (see the note)"


def image_findings(run: DrainRun | None) -> Iterator[str]:
    """Yield a sentence if images are the reason why no command is proposed (`drain_steps`)."""
    # If the nodes return, no command is proposed for any plan.
    if run is not None and run.image_notes and run.pace.away is None:
        yield "Because of these images, no command is proposed."


def unsafe_findings(runs: Sequence[DrainRun]) -> Iterator[str]:
    """Yield a sentence about the first of `runs` that is not safe, if any."""
    run = next((one for one in runs if not one.is_safe), None)
    if run is not None:
        yield f"{counted(run.pace.max_unavailable, 'node')} at once: {unsafe_because(run)}."


class _Wait(Struct):
    """The `pods` of a workload that fit only on their own node; `nodes` has the node of each.

    `reasons` are the distinct reasons why no other node takes the pods. Pods that can preempt other
    pods are left out.
    """

    pods: list[str] = field(default_factory=list)
    nodes: list[str] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)


def _waits(drains: Iterable[PlannedDrain]) -> dict[str, _Wait]:
    """Return the pods that wait until their node returns, by workload."""
    found: dict[str, _Wait] = {}
    for drain in drains:
        for move in drain.moves:
            if move.pod in drain.down:
                one = found.setdefault(move.workload, _Wait())
                one.pods.append(move.pod)
                one.nodes.append(drain.node)
                one.reasons[drain.down[move.pod]] = None
    return dict(sorted(found.items(), key=lambda item: (-len(item[1].pods), item[0])))


def _down(plan: DrainPlan, nodes: Iterable[str]) -> DurationNs | None:
    """Return the longest time for which a node in `nodes` was out of service.

    The time is from the best run of `plan`, or from the first run if there is no best run. Return
    None if there is no run, or if some of `nodes` did not return.
    """
    run = plan.best or next(iter(plan.runs), None)
    if run is None or not run.away.keys() >= set(nodes):
        return None
    return max(run.away[node] for node in nodes)


def wait_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield a sentence if there are pods that are down until their node is back.

    A second sentence is about the pods that fit on another node only if they preempt other pods. A
    third sentence is about the pods with a negative priority that have no node until the drained
    node is back.
    """
    if found := _waits(plan.drains):
        yield _wait_finding(plan, found)
    yield from _negative_wait_findings(plan)
    moves = [move for drain in plan.drains for move in drain.moves if move.pod in drain.preempts]
    if moves:
        fit = "fits on another node only if it preempts"
        if len(moves) > 1:
            fit = "fit on other nodes only if they preempt"
        yield (
            f"{counted(len(moves), 'pod')} of {_owners([move.workload for move in moves])} {fit} "
            "pods of lower priority, which the simulation includes."
        )


def _negative_wait_findings(plan: DrainPlan) -> Iterator[str]:
    """If nodes return, yield a sentence about pods with a negative priority that lack a node."""
    if not any(run.pace.away is not None for run in plan.runs):
        return
    if count := len({pod for one in plan.drains for pod in (*one.pending, *one.preempted)}):
        has, it, gives = ("has", "it", "gives") if count == 1 else ("have", "they", "give")
        yield (
            f"{_checked_alone(plan)}{counted(count, 'pod')} with a negative priority {has} no node "
            f"until the drained node is back, because {it} {gives} way to other pods."
        )


def _checked_alone(plan: DrainPlan) -> str:
    """Return the beginning of a sentence that says that each node is checked alone.

    This differs from the simulation of several drains, in which pods of earlier nodes have already
    moved to other nodes. Return "" if only one node is drained.
    """
    return "When each node is checked alone, " if len(plan.drains) > 1 else ""


def _wait_finding(plan: DrainPlan, found: Mapping[str, _Wait]) -> str:
    count = sum(len(one.pods) for one in found.values())
    down = _down(plan, [node for one in found.values() for node in one.nodes])
    lasts = "" if down is None else f" ({for_readers(down)}{' at most' if count > 1 else ''})"
    which = counted(count, "pod")
    fit, are, their = ("fits", "is", "its") if count == 1 else ("fit", "are", "their")
    until = f"{are} down until {their} node is back{lasts}"
    return f"{_checked_alone(plan)}{which} of {_owners(found)} {fit} on no other node and {until}."


def _owners(workloads: Iterable[str]) -> str:
    """Return `a`, `a and b`, or `a, b and 3 more`: the different `workloads`, as text."""
    names = list(dict.fromkeys(workloads))
    return " and ".join(names) if len(names) == 2 else listed(names, 2)


def wait_table(plan: DrainPlan) -> ResultTable:
    """Return a table of the pods that are down until their node is back, by workload."""
    rows = [
        {
            "workload": workload,
            "count": len(one.pods),
            "pods": one.pods,
            "on": one.nodes,
            "down_s": pace_seconds(_down(plan, one.nodes)),
            "where": few_or_count(set(one.nodes)),
            "why": listed(list(one.reasons), 1),
        }
        for workload, one in _waits(plan.drains).items()
    ]
    columns = (
        ResultColumn("count", "pods", NUMBER),
        ResultColumn("workload", "workload", NAME),
        ResultColumn("where", "node", NAME, 1),
        ResultColumn("down_s", "down for at most", SECONDS),
        ResultColumn("why", "why no other node takes them"),
    )
    return ResultTable("waits", "pods that wait for their node", columns, rows, 6)


def order_findings(drains: Sequence[PlannedDrain]) -> Iterator[str]:
    """Yield sentences about pods that must be evicted before the other pods of their node.

    Also yield a sentence about pods that come back to their node.
    """
    picky = [drain for drain in drains if drain.first]
    orders: dict[tuple[str, ...], list[str]] = {}
    for drain in picky:
        orders.setdefault(drain.first, []).append(drain.node)
    for first, names in islice(orders.items(), _ORDERS_NAMED_MAX):
        evict = f"evict {first_in_words(first)}"
        yield f"On {listed(names, 2)}, {evict}: other pods could take their room."
    if rest := sum(map(len, islice(orders.values(), _ORDERS_NAMED_MAX, None))):
        need = (
            "needs an order of its evictions" if rest == 1 else "need an order of their evictions"
        )
        yield f"{counted(rest, 'more node')} {need}, too."
    unselected = [drain.node for drain in picky if not drain.first_commands]
    if unselected:
        yield (
            f"kubectl drain cannot evict them first on {listed(unselected, 2)}: no label selector "
            "selects only these pods."
        )
    returning = [move for drain in drains for move in drain.returning]
    if returning:
        verb, they = ("comes", "it") if len(returning) == 1 else ("come", "they")
        nodes = listed(list(dict.fromkeys(move.origin for move in returning)), 2)
        owners = listed(sorted({move.workload for move in returning}), 2)
        yield (
            f"{counted(len(returning), 'pod')} of {owners} {verb} back to {nodes}, because {they} "
            "may run on cordoned nodes. kubectl drain does not wait for such pods."
        )


def command_findings(plan: DrainPlan) -> Iterator[str]:
    """Yield sentences about the drain commands of `plan`: how long they wait, and their flags."""
    if plan.slow:
        longest = for_readers(max(plan.slow.values()))
        yield (
            f"A drain waits up to {longest} until pods of {listed(list(plan.slow))} have stopped "
            "(terminationGracePeriodSeconds)."
        )
    yield from flag_findings(plan.flags, plan.blocked_flags if plan.drains else ())


def flag_findings(flags: Sequence[DrainFlag], blocked: Sequence[DrainFlag] = ()) -> Iterator[str]:
    """Yield sentences about lost pods, OpenShift's guard pods, and flags that the drains need.

    `blocked` are the flags that the drains of blocked nodes would need.
    """
    count = {one.flag: len(one.pods) for one in flags}
    more = {one.flag: len(one.pods) for one in blocked}
    parts = []
    for flag in dict.fromkeys((*count, *more)):
        pods = [counted(count[flag], "pod")] if flag in count else []
        if flag in more:
            number = f"{more[flag]:,} more" if pods else counted(more[flag], "pod")
            pods.append(f"{number} on blocked nodes")
        parts.append(f"{flag} ({', '.join(pods)})")
    if parts:
        yield f"kubectl drain needs {', '.join(parts)}."
    for one in flags:
        if one.lost:
            verb = "has" if len(one.lost) == 1 else "have"
            yield f"{listed(one.lost)} {verb} no controller and will be gone for good."
        if one.flag == FORCE and one.guards:
            guards = counted(len(one.guards), "guard pod")
            yield f"OpenShift creates {guards} again on nodes that return to service."


def unsafe_because(run: DrainRun) -> str:
    """Return the reasons why a run is not safe, as text; "" if the run is safe."""
    parts = []
    stuck = [name for name in run.unfinished if name not in run.unbegun]
    if stuck:
        verb = "becomes" if len(stuck) == 1 else "become"
        budgets = "budget" if len(run.held_up_by) == 1 else "budgets"
        because = f" because of {budgets} {listed(run.held_up_by, 2)}" if run.held_up_by else ""
        if run.kept:
            pod, reason = next(iter(run.kept.items()))
            more = f" and {len(run.kept) - 1} more stay" if len(run.kept) > 1 else " stays"
            because += f"{' and' if because else ''} because {pod}{more} ({reason})"
        parts.append(f"{listed(stuck, 2)} never {verb} empty{because}")
    if run.unbegun:
        drains, begin = ("drain", "begins") if len(run.unbegun) == 1 else ("drains", "begin")
        parts.append(f"the {drains} of {listed(run.unbegun, 2)} never {begin}")
    replicated = [one for one in run.stopped if one.wanted > 1]
    absent = [str(one.workload) for one in replicated if one.stopped_for is None]
    if absent:
        verb = "has" if len(absent) == 1 else "have"
        parts.append(f"{listed(absent, 2)} {verb} no ready pod at the end")
    stopped = [str(one.workload) for one in replicated if one.stopped_for is not None]
    if stopped:
        verb = "stops" if len(stopped) == 1 else "stop"
        parts.append(f"{listed(stopped, 2)} {verb} for a time")
    if run.pending:
        verb = "has" if len(run.pending) == 1 else "have"
        parts.append(f"{listed(list(run.pending), 2)} {verb} no node at the end")
    if run.uncreated:
        owners = listed([str(one.workload) for one in run.uncreated], 2)
        number = sum(one.pods for one in run.uncreated)
        verb = "is" if number == 1 else "are"
        reason = run.uncreated[0].reason
        parts.append(f"{counted(number, 'pod')} of {owners} {verb} not created again ({reason})")
    parts += _failed_jobs(run)
    if run.lost:
        parts.append(f"{counted(len(run.lost), 'pod')} on other nodes gone for good")
    if run.breaches:
        parts.append(f"{counted(run.breaches, 'eviction')} against a budget")
    return ", ".join(parts)


def _failed_jobs(run: DrainRun) -> Iterator[str]:
    """Yield a text about the Jobs that fail, and a text about Jobs that can no longer succeed."""
    failed = [one for one in run.failed_jobs if one.is_failed_job]
    failing = [one for one in run.failed_jobs if one.is_failing_job]
    fail = "fails" if len(failed) == 1 else "fail"
    for jobs, verb in ((failed, fail), (failing, "can only fail")):
        if jobs:
            yield f"{listed([one.subject for one in jobs], 2)} {verb}: {jobs[0].message}"


def pace_table(runs: Sequence[DrainRun]) -> ResultTable:
    """Return a table of `runs`: the number of nodes drained at once, the time and the effects."""
    rows = [
        {
            "at_once": run.pace.max_unavailable,
            "takes_s": pace_seconds(run.took),
            "evicted": run.evicted,
            "evicted_again": run.evicted_again,
            "waited": run.waited,
            "stopped": [str(one.workload) for one in run.stopped],
            "stops": len(run.stopped),
            "pending": list(run.pending),
            "pending_negative": list(run.pending_negative),
            "uncreated": {str(one.workload): one.pods for one in run.uncreated},
            "failed_jobs": [one.subject.partition(" ")[2] for one in run.failed_jobs],
            "lost": list(run.lost),
            "unfinished": list(run.unfinished),
            "held_up_by": list(run.held_up_by),
            "safe": run.is_safe,
            "result": "safe" if run.is_safe else unsafe_because(run),
        }
        for run in runs
    ]
    columns = (
        ResultColumn("at_once", "at once", NUMBER),
        ResultColumn("takes_s", "takes", SECONDS),
        ResultColumn("evicted", "evictions", NUMBER),
        ResultColumn("waited", "waited for a budget", NUMBER, 1),
        ResultColumn("stops", "stopped", NUMBER, 2),
        ResultColumn("result", "result"),
    )
    return ResultTable("paces", "how many nodes at once", columns, rows)


def pending_table(runs: Sequence[DrainRun]) -> ResultTable:
    """Return a table of the pods that have no node at the end of a run.

    The run is the first of `runs` that has such pods.
    """
    run = next((one for one in runs if one.pending), None)
    rows = [{"pod": pod, "why": why} for pod, why in ({} if run is None else run.pending).items()]
    columns = (ResultColumn("pod", "pod", NAME), ResultColumn("why", "why"))
    count = "" if run is None else f" with {counted(run.pace.max_unavailable, 'node')} at a time"
    return ResultTable("pending", f"pods without a node at the end{count}", columns, rows, 5)


def run_tables(run: DrainRun | None) -> tuple[ResultTable, ResultTable]:
    """Return two tables of `run`: the pods that waited, by budget; the times of each drain."""
    waits = [
        {"budget": budget, "pods": len(pods), "names": list(pods)}
        for budget, pods in sorted(({} if run is None else run.refused).items())
    ]
    times = [
        {
            "node": one.node,
            "begins_s": pace_seconds(one.begun),
            "empty_after_s": pace_seconds(one.emptied),
            "back_after_s": pace_seconds(one.back),
        }
        for one in (() if run is None else run.times)
    ]
    wait_columns = (
        ResultColumn("budget", "budget", NAME),
        ResultColumn("pods", "pods", NUMBER),
        ResultColumn("names", "evictions that it refused at first"),
    )
    time_columns: tuple[ResultColumn, ...] = (
        ResultColumn("node", "node", NAME),
        ResultColumn("begins_s", "drain begins", SECONDS),
        ResultColumn("empty_after_s", "drain takes", SECONDS),
    )
    if any(row["back_after_s"] is not None for row in times):
        time_columns += (ResultColumn("back_after_s", "back after", SECONDS),)
    count = "" if run is None else f" with {counted(run.pace.max_unavailable, 'node')} at a time"
    return (
        ResultTable("budget_waits", f"pods that wait for a budget{count}", wait_columns, waits, 0),
        ResultTable("node_times", f"times of the drains{count}", time_columns, times, 0),
    )


def _unplaced_findings(plan: DrainPlan) -> Iterator[str]:
    if unplaced := plan.unplaced:
        nodes = counted(len(unplaced), "node")
        verb, these = ("is", "it") if len(unplaced) == 1 else ("are", "them")
        yield (
            f"{nodes} {verb} blocked only because pods would stay pending; a drain that accepts "
            f"pending pods empties {these}."
        )


def _new_node_findings(trial: NewNodesTrial | None) -> Iterator[str]:
    if trial is None:
        return
    can = "can" if trial.is_enough else "still cannot"
    like = ", one like each of" if trial.count == len(trial.copied) > 1 else " like"
    count = "one new node" if trial.count == 1 else f"{trial.count:,} new nodes"
    new = f"With {count}{like} {listed(trial.copied)},"
    if trial.drained and not trial.is_enough:
        yield f"{new} {listed(trial.drained)} can be drained."
    elif len(trial.nodes) == 1:
        yield f"{new} this node {can} be drained."
    else:
        yield f"{new} these nodes {can} all be drained."


def _return_findings(nodes: Sequence[str]) -> Iterator[str]:
    if nodes:
        its = "its pods" if len(nodes) == 1 else "their pods"
        be = "returns" if len(nodes) == 1 else "return"
        yield f"If {listed(nodes)} {be} after the drain, {its} can wait: ask again with --for 10m."


def _order(plan: DrainPlan) -> ResultTable:
    rows = [
        {
            "step": number,
            "node": drain.node,
            "pods": drain.leaving,
            "lost": list(drain.lost),
            "waits": list(drain.waits),
            "preempts": list(drain.preempts),
            "pending_negative": [*drain.pending, *drain.preempted],
            "budgets": sorted(drain.charged),
            "limited": sum(drain.charged.values()),
        }
        for number, drain in enumerate(plan.drains, 1)
    ]
    columns = (
        ResultColumn("step", "step", NUMBER),
        ResultColumn("node", "node", NAME),
        ResultColumn("pods", "pods", NUMBER),
        ResultColumn("limited", "of these with a budget", NUMBER),
    )
    return ResultTable("order", "order", columns, rows, 8)


def _moves(plan: DrainPlan) -> ResultTable:
    rows = [
        {"pod": move.pod, "from": move.origin, "to": move.target}
        for drain in plan.drains
        for move in drain.moves
    ]
    return moves_table(rows)


def moves_table(rows: Sequence[Json]) -> ResultTable:
    """Return a table of the moves of pods; a terminal does not show the table.

    `rows` have the fields `pod`, `from` and `to`.
    """
    columns = (
        ResultColumn("pod", "pod", NAME),
        ResultColumn("from", "from", NAME),
        ResultColumn("to", "to", NAME),
    )
    return ResultTable("moves", "where the pods go", columns, rows, 0)
