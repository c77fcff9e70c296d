"""upgrade-check: checks whether every node can be drained and replaced, with surge nodes.

Each node is first checked alone, with surge nodes in its pool and zone. Budgets must allow the
evictions. Every pod must fit another node, or must fit the drained node when this node has
returned. Then the whole upgrade is simulated. If there are surge nodes, the pools are upgraded one
after another, and each pool zone by zone, as in managed upgrades. In each zone, the surge nodes are
added first. Then the other nodes, a given number at a time, are drained, stay down, and return.
Finally, the surge nodes are drained and deleted.

A surge node is a copy of a node of its pool and zone: the newest node that is in service, or else
the newest node (`node_to_copy`).

If the user does not state how many nodes are drained at a time, two numbers are simulated. The
first is the number of surge nodes, but at least 1. The second is higher: if there are surge nodes,
it is a tenth of the nodes of one pool in one zone; otherwise, it is a tenth of all nodes. Both
simulations run at the same time if there are two cores.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.objects import Node
from fairlead.api.quantity import milli_value
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import ZONE
from fairlead.engine.core.instant import DurationNs
from fairlead.engine.plugins.node_unschedulable import UNSCHEDULABLE
from fairlead.engine.state.node_info import NodeInfo
from fairlead.engine.workloads.disruption.budget_room import BudgetLimit
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.planner.cluster_model import ClusterModel
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node.device_kind import DeviceKinds
from fairlead.whatif.planner.node.node_copy import NodeCopy, copy_node, node_to_copy
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables, no_change_findings
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    begun_plan,
    blocking_owners,
    command_findings,
    completed,
    left_out_findings,
    negative_findings,
    order_findings,
    pace_table,
    paces_for,
    pending_table,
    quota_findings,
    refusal_findings,
    run_tables,
    safe_findings,
    single_findings,
    unsafe_because,
    wait_findings,
    wait_table,
)
from fairlead.whatif.planner.node_drain.drain_planner import (
    UNPLACED,
    Blocker,
    DrainPlanner,
    PlannedDrain,
)
from fairlead.whatif.planner.node_drain.drain_run import (
    DrainPace,
    DrainRound,
    DrainRun,
    pace_seconds,
    run_drains,
)
from fairlead.whatif.planner.node_drain.unplaced_pod import unplaced_blockers
from fairlead.whatif.planner.node_drain.workload_stop import WorkloadStop, stop_table
from fairlead.whatif.planner.waiting_pods import place_waiting_pods
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.experiment import Experiment
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.node_pool import (
    NodeTraits,
    PoolNames,
    node_traits,
    pool_labels,
    with_all_devices,
)

SURGE_MAX: Final = 100
FASTER: Final = "10%"
_ORDER: Final = (
    "The nodes of a pool and zone are drained in the order of their names. In another order, the "
    "result may differ."
)
_VARYING: Final = ("memory", "ephemeral-storage")
_VARYING_PART: Final = 20  # upstream: main.go: max-allocatable-difference-ratio (0.05)


Pools = dict[str, list[NodeInfo]]


def pools_of(model: ClusterModel, label: str) -> Pools:
    """Return the nodes by pool.

    Nodes with the same value of `label` form a pool. If `label` is "", the label of a node is the
    first of POOL_LABELS (labels of managed node pools) that the node has. If no node has one of
    these labels, nodes with equal traits, equal devices and similar sizes form a pool.
    """
    infos = model.table.nodes()
    every = [info.labels for info in infos]
    keys = (label,) if label else pool_labels(every)
    if keys:
        names = PoolNames.of(keys, every)
        found: Pools = {}
        for info in infos:
            found.setdefault(names.name(info.labels), []).append(info)
        return dict(sorted(found.items()))
    devices = DeviceKinds(model)
    by_traits: dict[tuple[NodeTraits, Hashable], list[list[NodeInfo]]] = {}
    for info in infos:
        groups = by_traits.setdefault((node_traits(info.node), devices.of(info.name)), [])
        group = next((one for one in groups if _is_as_large(info.node, one[0].node)), None)
        if group is None:
            groups.append(group := [])
        group.append(info)
    members = (group for groups in by_traits.values() for group in groups)
    return {f"pool-{at}": group for at, group in enumerate(members, 1)}


def _is_as_large(node: Node, other: Node) -> bool:
    """Return whether two nodes have similar allocatable amounts.

    Memory and disks may differ slightly, as between equal machines. All other amounts must be
    equal. Unhealthy devices are counted, too.
    """
    # upstream: cluster-autoscaler processors/nodegroupset/compare_nodegroups.go:
    # IsCloudProviderNodeInfoSimilar
    own, others = (
        with_all_devices(one.status.allocatable, one.status.capacity) for one in (node, other)
    )
    return own.keys() == others.keys() and all(
        _is_similar(name, milli_value(own[name]), milli_value(others[name])) for name in own
    )


def _is_similar(resource: str, amount: int, other: int) -> bool:
    difference_max = max(amount, other) // _VARYING_PART if resource in _VARYING else 0
    return abs(amount - other) <= difference_max


class SurgeGroup(Struct, frozen=True):
    """The `nodes` of one pool in one zone, and the `surge` nodes that are added for them."""

    nodes: tuple[str, ...]
    surge: tuple[NodeCopy, ...]


def surge_groups(model: ClusterModel, pools: Pools, count: int) -> list[SurgeGroup]:
    """Return a group for each pool and zone: the names of its nodes, and `count` surge nodes.

    The names are sorted. The surge nodes are copies of the newest node of the group that is in
    service. If no node of the group is in service, they are copies of its newest node.
    """
    found = []
    for position, (pool, members) in enumerate(pools.items(), 1):
        by_zone: dict[str, list[NodeInfo]] = {}
        for info in members:
            by_zone.setdefault(info.labels.get(ZONE, ""), []).append(info)
        for at, (zone, infos) in enumerate(sorted(by_zone.items()), 1):
            name = f"surge-{_node_name(pool, position)}"
            if len(by_zone) > 1:
                name += f"-{_node_name(zone, at)}"
            sample = node_to_copy(infos)
            copies = (
                copy_node(model, sample, f"{name}-{number}") for number in range(1, count + 1)
            )
            found.append(SurgeGroup(tuple(sorted(info.name for info in infos)), tuple(copies)))
    return found


def upgrade_rounds(
    model: ClusterModel, plan: DrainPlan, groups: Iterable[SurgeGroup]
) -> list[DrainRound]:
    """Return the rounds in which the nodes of `plan` are drained, one round for each of `groups`.

    Groups without nodes of `plan` are left out. If no group has surge nodes, all nodes are drained
    in one round.
    """
    drained = {drain.node for drain in plan.drains}
    found = []
    for group in groups:
        nodes = tuple(name for name in group.nodes if name in drained)
        if nodes:
            added = (one for copy in group.surge for one in copy.manifests(model))
            found.append(DrainRound(nodes, tuple(added)))
    if any(one.added for one in found):
        return found
    return [DrainRound(tuple(name for one in found for name in one.nodes))] if found else []


def run_upgrade(
    plan: DrainPlan,
    experiment: Experiment,
    rounds: Sequence[DrainRound],
    paces: Sequence[DrainPace],
    progress: Progress,
) -> None:
    """Simulate the `rounds` of `plan` at each of `paces`, and set the results in `plan`.

    The run at the first pace becomes `plan.runs`, and the run at the second pace becomes
    `plan.faster`. `plan.faster` is None if there is no second pace, or if the first run is not
    safe. Raises InputError if `experiment` cannot be run.
    """
    if rounds:
        first, *rest = run_drains(experiment, rounds, paces, progress)
        plan.runs, plan.faster = [first], next(iter(rest), None)


def upgrade_paces(
    rounds: Iterable[DrainRound], surge: int, max_unavailable: int | str | None, away: DurationNs
) -> list[DrainPace]:
    """Return the pace of the upgrade, and a faster pace if `max_unavailable` is None.

    A pace is the number of nodes that are drained at a time. The first pace is `max_unavailable`.
    If `max_unavailable` is None, the first pace is the number of surge nodes, but at least 1. The
    faster pace is the percentage FASTER of the nodes of a round. A faster pace that is not above
    the first pace is left out.
    """
    nodes = max((len(one.nodes) for one in rounds), default=0)
    if max_unavailable is not None:
        return paces_for(nodes, max_unavailable, away)
    at_once = max(surge, 1)
    faster = paces_for(nodes, FASTER, away)
    return [DrainPace(at_once, away), *(one for one in faster if one.max_unavailable > at_once)]


def _node_name(pool: str, position: int) -> str:
    """Return the name of a pool or zone in a form that is allowed in a node's name.

    If characters had to be replaced, `position` is appended, so that the result is unique. The
    result for "" is `nodes`.
    """
    name = re.sub(r"[^a-z0-9]+", "-", pool.lower())
    return (pool or "nodes") if name == pool else f"{name}-{position}"


def check_nodes(
    planner: DrainPlanner,
    groups: Iterable[SurgeGroup],
    nodes: Sequence[str],
    source: str,
    progress: Progress,
) -> DrainPlan:
    """Return the plan of draining each of `nodes` alone, with the surge nodes of its group.

    Pods that wait in the snapshot are placed first, also on surge nodes. Pods that fit no other
    node wait until their node returns. `source` is the option or the dump that names the nodes.
    Raises InputError if `begun_plan` does.
    """
    model, plan = planner.model, begun_plan(planner.model, nodes, source)
    progress.begin("checking nodes", len(plan.nodes))
    wanted = set(plan.nodes)
    done = 0
    for group in groups:
        with model.hypothesis():
            for one in group.surge:
                one.add_to(model)
            place_waiting_pods(model)
            names = [name for name in group.nodes if name in wanted]
            checks = independent_checks(model, partial(_check, planner), names)
            for drained, blockers in checks:
                progress.reach(done, 0)
                done += 1
                plan.drains += drained
                plan.blockers += blockers
    return completed(plan, planner)


def budgets_on(planner: DrainPlanner, nodes: Iterable[str]) -> list[BudgetLimit]:
    """Return the budgets of pods that a drain of `nodes` evicts, sorted by namespace and name."""
    room = planner.budgets
    keys = {
        limit.key for name in nodes for pod in planner.evicted(name) for limit in room.of(pod.pod)
    }
    return [one for one in room.limits() if one.key in keys]


def _check(planner: DrainPlanner, name: str) -> tuple[list[PlannedDrain], list[Blocker]]:
    """Return ([the drain of the node `name`], []), or ([], blockers) if it cannot be drained."""
    blockers = planner.refusals(name)
    drained = planner.drained_alone(name, return_again=True)
    if isinstance(drained, Blocker):
        return [], [*blockers, *unplaced_blockers(planner, drained, returns=True)]
    return [] if blockers else [drained], blockers


# --- the answer -------------------------------------------------------------------------------


def upgrade_answer(
    plan: DrainPlan,
    limits: Sequence[BudgetLimit],
    stops: Sequence[WorkloadStop],
    surge: int,
    source: str,
    notes: tuple[str, ...],
) -> TabularAnswer:
    """Return the answer of `fairlead upgrade-check`.

    `limits` are the budgets of the evicted pods (`budgets_on`). `stops` are the workloads that stop
    (`workload_stops`). `surge` is the number of surge nodes at a time. The answer is no if a node
    is blocked, or if the upgrade is not safe.
    """
    run = plan.runs[0] if plan.runs else None
    facts: Json = {
        "nodes": len(plan.nodes),
        "drainable": len(plan.drains),
        "blocked": plan.blocked,
        "left_out": plan.left_out,
        "surge": surge,
        "at_once": None if run is None else run.pace.max_unavailable,
        "takes_s": None if run is None else pace_seconds(run.took),
        "kubectl_flags": {one.flag: list(one.pods) for one in plan.flags},
    }
    never = [one for one in limits if one.is_permanent and one.healthy]
    tables = (
        *blocker_tables(plan.blockers),
        stop_table(stops),
        wait_table(plan),
        # The verdict and a finding contain the results.
        replace(pace_table([*plan.runs, *([] if plan.faster is None else [plan.faster])]), shown=0),
        pending_table(plan.runs),
        _never(never),
        *run_tables(run),
    )
    return TabularAnswer(
        "UpgradeCheck",
        source,
        _verdict(plan, run, surge),
        tuple(_findings(plan, run, never, stops, surge)),
        tables,
        facts,
        notes,
        is_no=bool(plan.blockers) or plan.best is None,
    )


def _verdict(plan: DrainPlan, run: DrainRun | None, surge: int) -> str:
    blocked, total = len(plan.blocked), counted(len(plan.nodes), "node")
    how = f"with {counted(surge, 'surge node')}" if surge else "without surge nodes"
    if run is not None:
        how = f"{_pace_words(run, surge)}, {how},"
    if blocked:
        owners = blocking_owners(plan)
        stops = f"stops: {counted(blocked, 'node')} cannot be drained"
        return f"An upgrade of {total} {how} {stops}{f' ({owners})' if owners else ''}."
    if run is None or run.took is None:
        because = "" if run is None else f": {unsafe_because(run)}"
        return f"An upgrade of {total} {how} does not finish{because}."
    words = "" if run.is_safe else f", but {unsafe_because(run)}"
    return f"An upgrade of {total} {how} completes in {for_readers(run.took)}{words}."


def _assumptions(away: DurationNs, surge: int) -> str:
    """Return the assumptions of the simulation that options can change, and name these options."""
    down = f"Each node is down for {for_readers(away)} after its drain (--for)"
    if not surge:
        return f"{down}. No node is added (--surge)"
    added = "surge node is" if surge == 1 else "surge nodes are"
    return f"{down}. {surge} {added} added to each pool and zone (--surge; 0 adds none)"


def _pace_words(run: DrainRun, surge: int) -> str:
    # With surge nodes, a percentage is of the nodes of each pool and zone.
    is_most = surge and run.pace.share and run.pace.max_unavailable > 1
    return f"up to {run.pace.words}" if is_most else run.pace.words


def _findings(
    plan: DrainPlan,
    run: DrainRun | None,
    never: Sequence[BudgetLimit],
    stops: Sequence[WorkloadStop],
    surge: int,
) -> Iterable[str]:
    if not plan.blocked:
        yield from safe_findings(run)
    yield from negative_findings(run)
    if run is not None and run.pace.away is not None:
        yield f"{_assumptions(run.pace.away, surge)}."
        if len(plan.drains) > 1:
            yield _ORDER
    yield from left_out_findings(plan)
    if never:
        names = listed([one.key for one in never])
        verb = "allows" if len(never) == 1 else "allow"
        yield f"{counted(len(never), 'budget')} never {verb} an eviction: {names}."
    stuck = sorted({one.workload for one in plan.blockers if one.cause in UNPLACED})
    if stuck:
        even = "no other node, not even on a surge node," if surge else "no other node"
        yield f"The pods of {listed(stuck)} fit on {even} and not on their own when it is back."
    if run is not None and plan.blocked:
        because = f": {unsafe_because(run)}" if not run.is_safe else ""
        took = "never ends" if run.took is None else f"takes {for_readers(run.took)}"
        count = len(plan.drains)
        which = "node" if count == 1 else f"{count:,} nodes"
        yield f"Draining the other {which} {took}{because}."
    yield from quota_findings(plan)
    yield from refusal_findings(plan)
    yield from _cordoned_findings(plan, run)
    yield from _faster_findings(plan.faster, surge)
    yield from no_change_findings(plan.blockers)
    yield from wait_findings(plan)
    yield from order_findings(plan.drains)
    yield from command_findings(plan)
    yield from single_findings((one.workload, one.wanted) for one in stops)


def _cordoned_findings(plan: DrainPlan, run: DrainRun | None) -> Iterable[str]:
    """Yield a sentence about nodes that were cordoned before the plan and stay cordoned after it.

    There is a sentence only if pods stay pending because of a cordon. A surge node takes the pods
    of a cordoned node during the drain. When the surge node is gone, these pods need room on the
    cordoned node.
    """
    refusals = () if run is None else run.pending.values()
    cordoned = [one.node for one in plan.drains if one.node not in plan.to_cordon]
    if cordoned and any(UNSCHEDULABLE.message in why for why in refusals):
        was, them = ("was", "it is") if len(cordoned) == 1 else ("were", "they are")
        again = "returns" if len(cordoned) == 1 else "return"
        yield (
            f"{listed(cordoned)} {was} cordoned before, and {again} cordoned: kubectl uncordon, "
            f"when {them} back, may make room for the pods without a node."
        )


def _faster_findings(run: DrainRun | None, surge: int) -> Iterable[str]:
    """Yield a sentence about the `run` at a faster pace, if there is one."""
    if run is None:
        return
    with_pace = f"with --max-unavailable {run.pace.share}, {_pace_words(run, surge)}"
    if run.is_safe and run.took is not None:
        yield f"A faster pace is safe, too: {with_pace}, it takes {for_readers(run.took)}."
    else:
        yield f"A faster pace is not safe: {with_pace}, {unsafe_because(run)}."


def _never(limits: Sequence[BudgetLimit]) -> ResultTable:
    rows = [
        {"pdb": one.key, "rule": one.rule, "wanted": one.wanted, "problem": one.problem}
        for one in limits
    ]
    columns = (
        ResultColumn("pdb", "budget", NAME),
        ResultColumn("wanted", "pods wanted", NUMBER),
        ResultColumn("rule", "rule"),
    )
    # The table of blockers shows them too, with the nodes.
    return ResultTable("never", "budgets that never allow an eviction", columns, rows, 0)
