"""consolidate: finds the nodes that can be removed, and the reasons why other nodes stay.

    1  rules      A node is blocked if a pod, an annotation or a disruption budget forbids its
                  removal. It is also blocked if it runs the control plane, if its kubelet does not
                  answer, or if its evictions would make a Job fail.
    2  choice     The other nodes are tried one after another. A node is chosen if the scheduler
                  finds a place for its pods on nodes that are not chosen. This is done in several
                  orders: lowest load per price first (per size without a price), lowest load
                  first, and fewest pods first. If there are prices, highest price first is another
                  order. The choice that saves most is taken. If the number of nodes to remove is
                  limited, each order ends when the limit is reached.
    3  plan       From the original state, the chosen nodes are cordoned together and emptied one
                  after another. So each pod moves once (`plan_drains`). A node that cannot be
                  emptied in this step stays.
    4  proof      After the plan, the nodes that a rule blocks are emptied, too. A node that cannot
                  be emptied must stay even without the rule. Either a pod fits nowhere else, or
                  the pods do not fit in addition to those of the plan's nodes.

Chosen nodes are cordoned first. Otherwise, the scheduler, which prefers empty nodes, would place
pods on the nodes that are removed next. The result is the best of the choices that were tried.
`ConsolidationPlan.most` is a proven upper bound on the number of nodes that can be removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.state.resource_columns import CPU, MEMORY
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.autoscaling.node_group import HOURS_PER_MONTH
from fairlead.whatif.outcome.workload import workload_of
from fairlead.whatif.planner.cluster_model import ClusterModel, is_leaving, moves_with_drain
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node.drain_exemption import drain_exemption
from fairlead.whatif.planner.node.node_bound import PODS_PER_NODE, NodeBound, fewest_nodes
from fairlead.whatif.planner.node_drain.autoscaler_rule import (
    NOT_OF_KUBECTL,
    RULE_OF,
    AutoscalerRules,
)
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables, few_or_count
from fairlead.whatif.planner.node_drain.drain_command import delete_step, drain_steps
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    command_findings,
    image_findings,
    image_reservation,
    moves_table,
    order_findings,
    pace_table,
    pending_table,
    plan_drains,
    unsafe_because,
    unsafe_findings,
)
from fairlead.whatif.planner.node_drain.drain_planner import (
    BlockCause,
    Blocker,
    DrainPlanner,
    PlannedDrain,
)
from fairlead.whatif.planner.node_drain.drain_run import DrainRun, pace_seconds
from fairlead.whatif.planner.node_drain.job_room import JobRoom
from fairlead.whatif.planner.node_drain.unplaced_pod import unplaced_blockers
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import PhasesInTurn, Progress
from fairlead.whatif.snapshot.control_plane import is_control_plane

_FEW_NODES: Final = 16  # the commands for this number of nodes usually fit on a screen


class ConsolidationPlan(Struct):
    """The `plan` of the nodes that can be removed, and the reasons why the other nodes stay.

    `total` is the number of nodes in the cluster. `candidates` is the number of nodes from which
    the plan chooses, and `bound` is the minimum number of them that must stay. `blockers` are
    rules, budgets and pods that prevent the removal of nodes. Such a pod fits no other node even if
    only its own node is emptied. A node in `needed` has no blocker, but the remaining nodes lack
    room for its pods in addition to those of the plan's nodes. A node in `needed_anyway` is blocked
    by a rule or a budget. Without this blocker, it would be in `needed`. For the nodes of both
    lists, `blocker_by_node` contains the pod that does not fit, and the scheduler's reason.
    `prices` maps nodes to hourly prices; nodes without a known price are missing. `limit` is the
    maximum number of nodes to remove, None for no limit. `untried` is the number of nodes that were
    not tried, because the limit was already reached.

    If the drains of a larger plan were not safe, `plan` is a smaller plan, and `unsafe` is the run
    of the larger plan. The reasons why nodes stay are then those of the larger plan. In all other
    cases, `unsafe` is None. `has_autoscaler` is set if the Deployment or the status of a Cluster
    Autoscaler shows that the cluster has one. It is also set if the cloud provider runs one by
    default.
    """

    total: int
    candidates: int
    plan: DrainPlan
    bound: NodeBound
    blockers: list[Blocker] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    needed_anyway: list[str] = field(default_factory=list)
    blocker_by_node: Mapping[str, Blocker] = field(default_factory=dict)
    prices: Mapping[str, float] = field(default_factory=dict)
    limit: int | None = None
    untried: int = 0
    unsafe: DrainRun | None = None
    has_autoscaler: bool = True

    @property
    def most(self) -> int:
        """An upper bound on the number of nodes that can be removed."""
        return self.candidates - self.bound.count

    @property
    def removable(self) -> list[str]:
        """The nodes that can be removed, in the order of their drains."""
        return [drain.node for drain in self.plan.drains]

    @property
    def saving(self) -> float:
        """The cost per hour of the nodes that can be removed."""
        return float_sum(self.prices.get(name, 0.0) for name in self.removable)


def consolidate(
    planner: DrainPlanner,
    rules: AutoscalerRules,
    nodes: Sequence[str],
    prices: Mapping[str, float],
    progress: Progress,
    *,
    limit: int | None = None,
) -> ConsolidationPlan:
    """Choose at most `limit` of `nodes` that can be removed; the model is unchanged afterwards.

    `rules` and the budgets of `planner` can forbid the removal of a node. `prices` maps nodes to
    hourly prices. Of several choices, the one whose nodes have the highest total price is taken, or
    without prices the one with the most nodes. This function sets `planner.deletes_nodes`, because
    the chosen nodes are deleted after their drain.
    """
    model = planner.model
    planner.deletes_nodes = True
    blockers: list[Blocker] = []
    free = []
    jobs = _jobs(planner)
    for name in nodes:
        found = _rule_blockers(planner, rules, jobs, name)
        blockers += found
        if not found:
            free.append(name)
    bound = fewest_nodes(model, nodes)
    most = len(nodes) - bound.count
    chosen, failed = _best_choice(planner, free, prices, progress, limit, most)
    untried = len(free) - len(chosen) - len(failed)
    plan = plan_drains(planner, chosen, progress)
    failed = {**{one.node: one for one in reversed(plan.blockers)}, **failed}
    plan.blockers.clear()  # a chosen node that cannot be emptied in the plan counts as needed
    going = [drain.node for drain in plan.drains]
    left = set(chosen).difference(going)
    names = [name for name in failed if name not in left]
    needed, unplaced = _tried_alone(planner, names, failed, progress)
    needed = [*(name for name in chosen if name in left), *needed]
    with _after(planner, plan):
        stuck = _stuck_without_rules(planner, blockers, progress)
    needed_anyway, also_unplaced = _tried_alone(planner, list(stuck), stuck, progress)
    blocker_by_node = failed | stuck
    blockers += _with_remedies(planner, plan, [*unplaced, *also_unplaced])
    return ConsolidationPlan(
        model.table.count,
        len(nodes),
        plan,
        bound,
        blockers,
        needed,
        needed_anyway,
        {
            name: blocker_by_node[name]
            for name in (*needed, *needed_anyway)
            if name in blocker_by_node
        },
        prices,
        limit,
        untried,
        has_autoscaler=not rules.is_assumed,
    )


def consolidate_safely(
    find: Callable[[int | None], ConsolidationPlan],
    planner: DrainPlanner,
    limit: int | None,
) -> ConsolidationPlan:
    """Return a plan of at most `limit` nodes; if it is not safe, try other plans.

    `find` returns a plan of at most the given number of nodes, with the runs of its drains. If the
    plan is not safe, and the pods of some nodes must be placed in a certain order, a second plan
    leaves these nodes in service. If there is still no safe plan, for lack of room (`_lacks_room`),
    smaller plans are tried, with 1, 2, 4, ... fewer nodes. If none of the smaller plans is safe,
    the result is the plan that was found before them.
    """
    found = find(limit)
    if found.plan.is_order_unsafe:
        planner.reorders = False
        found = find(limit)
    fewer, smaller = 1, found
    while _lacks_room(smaller.plan) and fewer < len(found.removable):
        smaller = find(len(found.removable) - fewer)
        fewer *= 2
    if smaller is found or smaller.plan.best is None:
        return found
    going = set(smaller.removable)
    return replace(
        found,
        plan=smaller.plan,
        blockers=[one for one in found.blockers if one.node not in going],
        needed=[name for name in found.needed if name not in going],
        needed_anyway=[name for name in found.needed_anyway if name not in going],
        blocker_by_node={
            name: why for name, why in found.blocker_by_node.items() if name not in going
        },
        unsafe=found.plan.runs[-1],
    )


def _lacks_room(plan: DrainPlan) -> bool:
    """Return True if no run is safe and pods lacked room in the last run.

    Pods lacked room if some have no node at the end of this run, or if displaced pods preempted
    pods of nodes that stay. Such a preemption shows as a lost pod, a failed Job or a breached
    budget. The drains themselves breach no budget and make no Job fail, and the pods that they
    evict do not count as lost.
    """
    if not plan.runs or plan.best is not None:
        return False
    last = plan.runs[-1]
    return bool(last.pending or last.lost or last.failed_jobs or last.breaches)


def _tried_alone(
    planner: DrainPlanner,
    names: Sequence[str],
    failed: Mapping[str, Blocker],
    progress: Progress,
) -> tuple[list[str], list[Blocker]]:
    """Return (those of `names` that could be emptied as the only node, blockers of the others).

    `failed` maps each of `names` to the blocker that was found when other nodes had already been
    emptied. The pods of this blocker's workload are tried first, because they are the most likely
    to fit no node.
    """

    def alone(name: str) -> PlannedDrain | Blocker:
        found = planner.fits_first(name, failed[name].owner)
        if isinstance(found, Blocker):
            return found
        return planner.drained_alone(name, return_again=False)

    needed: list[str] = []
    blockers: list[Blocker] = []
    progress.begin("checking nodes", len(names))
    for number, found in enumerate(independent_checks(planner.model, alone, names)):
        progress.reach(number, 0)
        if isinstance(found, PlannedDrain):
            needed.append(names[number])
        else:
            blockers.append(found)
    return needed, blockers


@contextmanager
def _after(planner: DrainPlanner, plan: DrainPlan) -> Iterator[None]:
    """Apply the plan's drains to the model until the `with` block ends."""
    with planner.model.hypothesis():
        for drain in plan.drains:
            planner.close(drain.node)
        for drain in plan.drains:
            planner.empty(drain.node)
        yield


def _stuck_without_rules(
    planner: DrainPlanner, blockers: Sequence[Blocker], progress: Progress
) -> dict[str, Blocker]:
    """Return the nodes whose pods would not fit elsewhere even if `blockers` did not exist.

    The result maps each of these nodes to the blocker that `_choose` returns. Nodes whose blockers
    have the same causes are emptied together, because a user who ignores these causes (`--ignore`)
    unblocks them all.
    """
    by_node: dict[str, set[BlockCause]] = {}
    for one in blockers:
        if one.cause is not BlockCause.EXEMPT:
            by_node.setdefault(one.node, set()).add(one.cause)
    groups: dict[frozenset[BlockCause], list[str]] = {}
    for name, causes in by_node.items():
        groups.setdefault(frozenset(causes), []).append(name)
    found = dict[str, Blocker]()
    for names in groups.values():
        found |= _choose(
            planner, names, JobRoom((), planner.model.now, planner.model.stop_exit_code), progress
        )[1]
    return found


def _with_remedies(
    planner: DrainPlanner, plan: DrainPlan, blockers: Sequence[Blocker]
) -> Iterator[Blocker]:
    """Yield `blockers`, each with the change that lets its pod fit a node that the plan keeps.

    The change is searched in the state after the drains of `plan`, and becomes the `edit` of the
    blocker. `edit` is "" if no change is found. The change of one workload does not free the node
    if pods of other workloads on it fit no other node in this state either. The blockers of these
    workloads then follow. If the node of a blocker can be emptied in this state, the blocker is
    yielded as it is.
    """
    if not blockers:
        return
    with _after(planner, plan):
        for one in blockers:
            with planner.model.hypothesis():
                found = planner.empty(one.node)
            if isinstance(found, Blocker):
                unplaced = unplaced_blockers(planner, found, new_nodes=False)
                edits = [other.edit for other in unplaced if other.owner == one.owner]
                yield replace(one, edit=next(iter(edits), ""))
                yield from (other for other in unplaced if other.owner != one.owner)
            else:
                yield one


def _jobs(planner: DrainPlanner) -> JobRoom:
    model = planner.model
    return JobRoom(model.current_objects(), model.now, model.stop_exit_code)


def _too_little(resource: str) -> str:
    """Return why a node is kept: the other nodes have too little free `resource` for its pods."""
    if resource == "pods":
        return "the nodes that stay cannot run so many pods"
    return f"the nodes that stay do not have enough free {resource} for its pods"


def _job_blocker(planner: DrainPlanner, jobs: JobRoom, name: str) -> Blocker | None:
    """Return a blocker if a drain of node `name` evicts a pod that its Job would not replace."""
    evicted = [one.pod for one in planner.evicted(name) if not is_leaving(one)]
    pod = next(iter(jobs.not_replaced(evicted)), None)
    if pod is None:
        return None
    owner = str(workload_of(pod))
    why = "its Job would fail, because the evictions count as failures of its pods"
    edit = f"wait for the end of {owner}"
    return Blocker(name, pod.key, BlockCause.JOB, owner, why, edit, workload=owner)


def _rule_blockers(
    planner: DrainPlanner, rules: AutoscalerRules, jobs: JobRoom, name: str
) -> list[Blocker]:
    node = planner.model.node(name).node
    if why := drain_exemption(node):  # without a drain, nothing else can block it
        return [Blocker(name, "", BlockCause.EXEMPT, f"node/{name}", why)]
    found = list(rules.node_blockers(node))
    if is_control_plane(node):
        owner, why = f"node/{name}", "it runs the control plane"
        found.append(Blocker(name, "", BlockCause.CONTROL_PLANE, owner, why))
    failing = _job_blocker(planner, jobs, name)
    found += [] if failing is None else [failing]
    for pod in planner.evicted(name):
        if is_leaving(pod):
            continue
        blocker = rules.pod_blocker(name, pod.pod)
        if blocker is not None:
            found.append(blocker)
    return found + planner.refusals(name)


Rank = Callable[[str], tuple[float, str]]


def _best_choice(
    planner: DrainPlanner,
    names: Sequence[str],
    prices: Mapping[str, float],
    progress: Progress,
    limit: int | None,
    most: int,
) -> tuple[list[str], dict[str, Blocker]]:
    """Return the result of `_choose` for the best of several orders of the nodes.

    `most` is an upper bound on the number of nodes that can be removed.
    """
    ranks = _ranks(planner.model, prices)
    if prices:
        ranks.append(lambda name: (-prices.get(name, 0.0), name))
    orders = list(dict.fromkeys(tuple(sorted(names, key=rank)) for rank in ranks))
    phases = PhasesInTurn(progress)

    def choose(number: int) -> tuple[list[str], dict[str, Blocker]]:
        phase = phases.phase(number, f"trying order {number + 1} of {len(orders)}", len(names))
        return _choose(planner, orders[number], _jobs(planner), phase, limit)

    found = []
    numbers = range(len(orders))
    with closing(independent_checks(planner.model, choose, numbers, forked_min=2)) as choices:
        for choice in choices:
            phases.end_phase()
            found.append(choice)
            if not prices and len(choice[0]) in (limit, most):
                break  # no other order removes more nodes
    return max(found, key=lambda choice: _worth(choice[0], prices))


def _worth(names: Sequence[str], prices: Mapping[str, float]) -> tuple[float, int]:
    return float_sum(prices.get(name, 0.0) for name in names), len(names)


def _ranks(model: ClusterModel, prices: Mapping[str, float]) -> list[Rank]:
    """Return the sort keys of the orders in which nodes are tried."""
    total = [max(int(amount), 1) for amount in model.table.allocatable.sum(axis=1)]

    def share(amounts: Sequence[int]) -> float:
        return amounts[CPU] / total[CPU] + amounts[MEMORY] / total[MEMORY]

    def load(name: str) -> tuple[float, str]:
        return share(model.node(name).requested), name

    def load_for_its_price(name: str) -> tuple[float, str]:
        worth = prices.get(name, 0.0) or share(model.node(name).allocatable) or 1.0
        return share(model.node(name).requested) / worth, name

    def pods(name: str) -> tuple[float, str]:
        moving = sum(moves_with_drain(pod) for pod in model.node(name).pods.values())
        return float(moving), name

    return [load_for_its_price, load, pods]


def _choose(
    planner: DrainPlanner,
    names: Sequence[str],
    jobs: JobRoom,
    progress: Progress,
    limit: int | None = None,
) -> tuple[list[str], dict[str, Blocker]]:
    """Return (nodes that can be emptied together, blockers of the nodes that cannot be emptied).

    The nodes are tried in the order of `names`. The search ends when `limit` nodes are chosen.
    `jobs` counts the evictions of Jobs' pods. A blocker names a pod that cannot move, and its
    workload. If the nodes that stay have too little of a resource in total, the blocker names
    neither.
    """
    chosen: list[str] = []
    failed: dict[str, Blocker] = {}
    latest = ""
    progress.begin("trying nodes", len(names))
    with planner.model.hypothesis():
        for number, name in enumerate(names):
            if len(chosen) == limit:
                break
            progress.reach(number, 0)
            if lacking := planner.lacking_elsewhere(name):
                failed[name] = Blocker(name, "", BlockCause.NO_ROOM, "", _too_little(lacking))
                continue
            failing = _job_blocker(planner, jobs, name)
            if failing is not None:
                failed[name] = failing
                continue
            evicted = planner.evicted(name)
            # Most nodes are kept by pods of the workload that kept the node before them.
            found = planner.fits_first(name, latest)
            if not isinstance(found, Blocker):
                found = planner.empty(name, finds_order=False)
            if isinstance(found, PlannedDrain):
                chosen.append(name)
                for pod in evicted:
                    jobs.evict(pod.pod)
            else:
                failed[name] = found
                latest = found.owner
    return chosen, failed


# --- the answer -------------------------------------------------------------------------------


def consolidate_answer(
    found: ConsolidationPlan, model: ClusterModel, source: str, notes: tuple[str, ...]
) -> TabularAnswer:
    """Return the answer of `fairlead consolidate`."""
    best = found.plan.best
    facts: Json = {
        "nodes": found.total,
        "can_go": len(found.removable),
        "at_most": found.most,
        "max": found.limit,
        "untried": found.untried,
        "too_many": None if found.unsafe is None else _too_many(found.unsafe),
        "bound_by": found.bound.binds,
        "needed": found.needed,
        "needed_anyway": found.needed_anyway,
        "saving_per_hour": round(found.saving, 4) if found.prices else None,
        "saving_per_month": round(found.saving * HOURS_PER_MONTH, 2) if found.prices else None,
        "at_once": None if best is None else best.pace.max_unavailable,
        "takes_s": None if best is None else pace_seconds(best.took),
    }
    moves = [
        {"pod": move.pod, "from": move.origin, "to": move.target}
        for drain in found.plan.drains
        for move in drain.moves
    ]
    # The commands of the answer name the removable nodes. If these are few, their table comes last,
    # because it adds little. If they are many, the table comes early, so that a screen shows it.
    is_long, going = len(found.removable) > _FEW_NODES, _going(found, model)
    tables = (
        pace_table(found.plan.runs),
        pending_table(found.plan.runs),
        *((going,) if is_long else ()),
        _causes(found),
        *blocker_tables(found.blockers),
        _staying(found),
        *(() if is_long else (going,)),
        moves_table(moves),
    )
    return TabularAnswer(
        "Consolidation",
        source,
        _verdict(found),
        tuple(_findings(found)),
        tables,
        facts,
        notes,
        steps=tuple(_steps(found)),
    )


def _too_many(run: DrainRun) -> Json:
    return {"nodes": len(run.times), "why": unsafe_because(run)}


def _steps(found: ConsolidationPlan) -> Iterator[NextStep]:
    """Yield the steps that drain the nodes (`drain_steps`), and the step that deletes them."""
    plan = found.plan
    steps = tuple(drain_steps(found.removable, plan.drains, plan.to_cordon, plan.flags, plan.best))
    yield from steps
    if steps:
        yield delete_step(found.removable)


def _verdict(found: ConsolidationPlan) -> str:
    count, total = len(found.removable), counted(found.total, "node")
    if not count:
        # The largest group of nodes with the same causes, if `kubectl drain` ignores all of these
        # causes. A drain by hand could empty these nodes together.
        kept = _kept_only_by(found).items()
        by_hand = max((number for causes, number in kept if causes <= NOT_OF_KUBECTL), default=0)
        none = "The only node cannot" if found.total == 1 else f"None of {total} can"
        if not by_hand:
            return f"{none} be removed now."
        return (
            f"{none} be removed now by the rules of Cluster Autoscaler; at least {by_hand:,} could "
            "be drained by hand."
        )
    share = f"{100 * count / found.total:.0f}%"
    if found.plan.runs and found.plan.best is None:
        drains = "its drain is" if count == 1 else "their drains are"
        return f"{count:,} of {total} could be removed ({share}), but {drains} not safe."
    reservation = "" if found.plan.best is None else image_reservation(found.plan.best)
    if reservation:
        return f"{count:,} of {total} could be removed ({share}){reservation}."
    money = ""
    if found.saving:
        per_month = found.saving * HOURS_PER_MONTH
        money = f", which saves {found.saving:,.2f} per hour ({per_month:,.0f} per month)"
    return f"{count:,} of {total} can be removed now ({share}){money}."


def _findings(found: ConsolidationPlan) -> list[str]:
    sentences = []
    best = found.plan.best
    if best is not None and found.removable and best.image_notes:
        its = "Its drain takes" if len(found.removable) == 1 else "Their drains take"
        sentences += [f"{its} {for_readers(best.took or 0)}.", *image_findings(best)]
    elif best is not None and found.removable:
        count, total = len(found.plan.to_cordon), len(found.removable)
        steps = f"Cordon them all, then drain them {best.pace.words} in the order of the commands."
        if count < total:
            still = counted(count, "node that is", "nodes that are")
            cordon = f"Cordon the {still} not cordoned yet, then drain" if count else "Drain"
            steps = f"{cordon} all {total:,} nodes {best.pace.words} in the order of the commands."
        if len(found.removable) == 1:
            steps = "Drain it."
        sentences.append(f"{steps} This takes {for_readers(best.took or 0)}.")
    elif found.plan.runs:
        sentences += unsafe_findings(found.plan.runs)
    sentences += order_findings(found.plan.drains)
    sentences += command_findings(found.plan)
    if found.unsafe is not None:
        more = counted(len(found.unsafe.times), "node")
        sentences.append(f"Draining {more} is not safe: {unsafe_because(found.unsafe)}.")
    if found.untried:
        were = "node was" if found.untried == 1 else "nodes were"
        rest = f"{found.untried:,} {were} not tried"
        sentences.append(f"--max ended the search at {counted(found.limit or 0, 'node')}; {rest}.")
    sentences += _other_nodes(found)
    sentences += _rules_to_ignore(found)
    sentences.append(_limit(found))
    return sentences


def _other_nodes(found: ConsolidationPlan) -> Iterator[str]:
    """Yield sentences about the nodes that are not removed."""
    blocked, needed, anyway = (
        {one.node for one in found.blockers},
        found.needed,
        found.needed_anyway,
    )
    groups: list[tuple[int, str]] = []
    if blocked:
        groups.append((len(blocked), f"{'is' if len(blocked) == 1 else 'are'} blocked"))
    if needed:
        their = "its" if len(needed) == 1 else "their"
        why = f"must stay, because {their} pods would not all run elsewhere"
        groups.append((len(needed), why))
    others = found.total - len(found.removable)
    if len(blocked) == found.total > 1:
        yield f"All {found.total:,} are blocked."
    elif found.removable and len(groups) == 1 and groups[0][0] == others:
        yield f"The other {'node' if others == 1 else f'{others:,} nodes'} {groups[0][1]}."
    elif groups:
        parts = [f"{count:,} {what}" for count, what in groups]
        yield f"{'Of the others, ' if found.removable else ''}{' and '.join(parts)}."
    if anyway:
        them, their = ("it", "its") if len(anyway) == 1 else ("them", "their")
        yield (
            f"{listed(anyway)} would have to stay even if nothing blocked {them}. After the "
            f"removal of the others, {their} pods would not all fit elsewhere."
        )


def _kept_only_by(found: ConsolidationPlan) -> Counter[frozenset[BlockCause]]:
    """Return, for each set of causes, the number of nodes that stay only because of this set.

    A node is counted under the set of all its causes. Nodes in `found.needed_anyway` are not
    counted. Without the causes of a set, all nodes that are counted under it could be emptied
    together, after the nodes of the plan.
    """
    causes: dict[str, set[BlockCause]] = {}
    for one in found.blockers:
        causes.setdefault(one.node, set()).add(one.cause)
    for name in found.needed_anyway:
        causes.pop(name, None)
    return Counter(map(frozenset, causes.values()))


def _rules_to_ignore(found: ConsolidationPlan) -> Iterator[str]:
    """Yield a sentence about --ignore for each set of rules that is the only reason why nodes stay.

    If `kubectl drain` ignores all rules of at least one such set, also yield sentences about drains
    by hand.
    """
    kept = _kept_only_by(found)
    for causes, count in sorted(kept.items(), key=lambda one: (-one[1], sorted(one[0]))):
        if causes <= RULE_OF.keys():
            options = sorted({f"--ignore {RULE_OF[one].value}" for one in causes})
            words = "cause" if len(causes) == 1 else "causes"
            them = "the rule" if len(options) == 1 else "these rules"
            yield (
                f"The only {words} for {counted(count, 'node')}: {', '.join(sorted(causes))}. "
                f"{' '.join(options)} plans without {them}."
            )
    if any(causes <= NOT_OF_KUBECTL for causes in kept):
        yield from _about_drains_by_hand(found)


def _about_drains_by_hand(found: ConsolidationPlan) -> Iterator[str]:
    causes = {one.cause for one in found.blockers}
    volumes = " It deletes emptyDir volumes, and leaves the data of hostPath volumes behind."
    loss = volumes if BlockCause.LOCAL_STORAGE in causes else ""
    if found.has_autoscaler:
        yield f"A drain by hand does not follow the rules of Cluster Autoscaler.{loss}"
    else:
        yield (
            "The dump has no Cluster Autoscaler; its rules apply here with their default flags. A "
            f"drain by hand does not follow them.{loss}"
        )


def _limit(found: ConsolidationPlan) -> str:
    count, candidates, binds = found.bound.count, found.candidates, found.bound.binds
    stay = counted(count, "node")
    if candidates < found.total:  # nodes that are no candidates stay, too
        which = f"{count:,} of the {candidates:,} nodes" if candidates > 1 else "the only node"
        stay = f"{which} that the plan may remove"
    if not count:
        why = "the pods that controllers would create again need none of them"
    elif binds == PODS_PER_NODE:
        why = f"with the limits of pods per node, the pods need {stay}"
    elif binds.count("/") < 2:  # `binds` is a resource; a workload would be kind/namespace/name
        why = f"the {binds} requests of the pods need {stay}"
    else:
        why = f"the pods of {binds} exclude each other on a node, so they need {stay}"
    most = f"more than {counted(found.most, 'node')}" if found.most else "a node"
    return f"No plan can remove {most}: {why}."


def _cause_rows(found: ConsolidationPlan) -> list[Json]:
    """Return a row for each cause; first those that are the only cause for the most nodes."""
    by_cause: dict[BlockCause, set[str]] = {}
    for one in found.blockers:
        by_cause.setdefault(one.cause, set()).add(one.node)
    kept = _kept_only_by(found)
    rows = [
        {"cause": cause.value, "nodes": len(nodes), "alone": kept[frozenset((cause,))]}
        for cause, nodes in sorted(by_cause.items())
    ]
    return sorted(rows, key=lambda row: (-row["alone"], -row["nodes"]))


def _causes(found: ConsolidationPlan) -> ResultTable:
    columns = (
        ResultColumn("nodes", "nodes", NUMBER),
        ResultColumn("alone", "kept only by this", NUMBER),
        ResultColumn("cause", "cause"),
    )
    return ResultTable("causes", "what keeps nodes", columns, _cause_rows(found))


def _staying(found: ConsolidationPlan) -> ResultTable:
    """Return a table of the nodes in `needed` and `needed_anyway`."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name, blocker in found.blocker_by_node.items():
        groups.setdefault((blocker.owner, blocker.why), []).append(name)
    rows = [
        {"where": few_or_count(names), "on": sorted(names), "owner": owner, "why": why}
        for (owner, why), names in sorted(groups.items(), key=lambda one: (-len(one[1]), one[0]))
    ]
    columns = (
        ResultColumn("where", "nodes", NAME),
        ResultColumn("owner", "because of", NAME),
        ResultColumn("why", "why its pods do not run elsewhere"),
    )
    return ResultTable("staying", "what needs the other nodes", columns, rows, 6)


def _going(found: ConsolidationPlan, model: ClusterModel) -> ResultTable:
    rows = [
        {
            "step": number,
            "node": drain.node,
            "type": model.node(drain.node).labels.get(INSTANCE_TYPE, ""),
            "price": found.prices.get(drain.node),
            "pods": len(drain.moves),
            "lost": list(drain.lost),
            "gone": len(drain.lost),
        }
        for number, drain in enumerate(found.plan.drains, 1)
    ]
    gone = (ResultColumn("gone", "pods gone for good", NUMBER),)
    columns = (
        ResultColumn("step", "step", NUMBER),
        ResultColumn("node", "node", NAME),
        ResultColumn("type", "type", NAME, 1),
        ResultColumn("price", "per hour", NUMBER),
        ResultColumn("pods", "pods to move", NUMBER),
        *(gone if any(row["gone"] for row in rows) else ()),
    )
    return ResultTable("going", "nodes that can be removed", columns, rows, 8)
