"""consolidate: finds the nodes that can be removed, and the reasons why other nodes stay.

    1  rules      A node is blocked if a pod, an annotation or a disruption budget forbids its
                  removal. It is also blocked if it runs the control plane, if its kubelet does not
                  answer, or if its evictions would make a Job fail.
    2  choice     A node is chosen if the scheduler can place its pods on the nodes that stay
                  (`RemovalSearch`).
    3  plan       From the original state, the chosen nodes are cordoned together and emptied one
                  after another. So each pod moves once (`placed_drains`). A node that cannot be
                  emptied in this step stays.
    4  proof      After the plan, the nodes that a rule blocks are emptied, too. A node that cannot
                  be emptied must stay even without the rule. Either a pod fits nowhere else, or the
                  node's pods do not fit in addition to the pods of the plan's nodes.

Chosen nodes are cordoned first. Otherwise, the scheduler, which prefers empty nodes, would place
pods on the nodes that are removed next. The result is the best of the choices that were tried.
`ConsolidationPlan.most` is a proven upper bound on the number of nodes that can be removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.api.well_known_label import INSTANCE_TYPE, is_virtual, virtual_words
from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.input.error import InputError
from fairlead.whatif.outcome.assessment.next_step import NextStep
from fairlead.whatif.outcome.autoscaling.node_group import HOURS_PER_MONTH
from fairlead.whatif.planner.cluster_model import ClusterModel, is_leaving
from fairlead.whatif.planner.independent_check import independent_checks
from fairlead.whatif.planner.node.drain_exemption import deletion_words
from fairlead.whatif.planner.node.node_bound import (
    NODE_GROUPS,
    PODS_PER_NODE,
    NodeBound,
    fewest_nodes,
)
from fairlead.whatif.planner.node_drain.autoscaler_rule import (
    NOT_OF_KUBECTL,
    RULE_OF,
    AutoscalerRules,
    IgnoredRule,
)
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables, few_or_count
from fairlead.whatif.planner.node_drain.drain_command import delete_step
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    command_findings,
    image_findings,
    image_reservation,
    moves_table,
    order_findings,
    pace_table,
    pending_table,
    placed_drains,
    plan_steps,
    single_findings,
    stopped_by,
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
from fairlead.whatif.planner.removal_search import (
    RemovalChoice,
    RemovalSearch,
    choose_nodes,
    job_blocker,
    jobs_of,
    refusal_blockers,
)
from fairlead.whatif.planner.waiting_pods import WaitingGang
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.control_plane import is_control_plane

_FEW_NODES: Final = 16  # the commands for this number of nodes usually fit on a screen


class ConsolidationPlan(Struct):
    """The `plan` of the nodes that can be removed, and the reasons why the other nodes stay.

    If the drains of a larger plan were not safe, `plan` is a smaller plan, and `unsafe` is the run
    of the larger plan. The reasons why nodes stay then belong to the larger plan.
    """

    total: int  # the number of nodes in the cluster, without virtual nodes (`machines`)
    candidates: int  # the number of nodes from which the plan chooses
    plan: DrainPlan
    bound: NodeBound  # the minimum number of candidates that must stay
    # Rules and budgets that prevent the removal of nodes, and pods that fit no other node even if
    # only their own node is emptied.
    blockers: list[Blocker] = field(default_factory=list)
    # Nodes without a blocker whose pods, in addition to the pods of the plan's nodes, do not fit on
    # the remaining nodes.
    needed: list[str] = field(default_factory=list)
    # Nodes that a rule or a budget blocks, and that would otherwise be in `needed`.
    needed_anyway: list[str] = field(default_factory=list)
    # For the nodes in `needed` and `needed_anyway`, the pod that does not fit, and the scheduler's
    # reason.
    blocker_by_node: Mapping[str, Blocker] = field(default_factory=dict)
    # Hourly prices by node; nodes without a known price are missing.
    prices: Mapping[str, float] = field(default_factory=dict)
    limit: int | None = None  # the maximum number of nodes to remove, None for no limit
    # The number of nodes that were not tried, because the limit was already reached.
    untried: int = 0
    left_out: int = 0  # the number of virtual nodes
    unsafe: DrainRun | None = None  # None if no larger plan was unsafe
    # Whether the Deployment or the status of a Cluster Autoscaler shows that the cluster has one,
    # or the cloud provider runs one by default.
    has_autoscaler: bool = True
    # The nodes that were chosen for the plan, and the nodes that were refused.
    choice: RemovalChoice = field(default_factory=RemovalChoice)
    # The labels of the chosen nodes.
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # The waiting gangs for whose members the plan keeps room.
    gangs: Sequence[WaitingGang] = ()

    @property
    def most(self) -> int:
        """An upper bound on the number of nodes that can be removed."""
        return self.candidates - self.bound.count

    @property
    def is_about_some(self) -> bool:
        """Whether the plan chooses only from some of the nodes, because the user selected them."""
        return self.candidates < self.total

    @property
    def removable(self) -> list[str]:
        """The nodes that can be removed, in the order of their drains."""
        return [drain.node for drain in self.plan.drains]

    @property
    def saving(self) -> float:
        """The cost per hour of the nodes that can be removed."""
        return float_sum(self.prices.get(name, 0.0) for name in self.removable)


def machines(model: ClusterModel, names: Sequence[str], source: str) -> list[str]:
    """Return the nodes in `names` that have a machine: those that are not virtual.

    Raises InputError, with `source` in its message, if all nodes in `names` are virtual. `source`
    is the option or the dump that names the nodes.
    """
    words = {name: virtual_words(model.node(name).labels) for name in names}
    found = [name for name in names if not words[name]]
    if names and not found:
        raise InputError(source, f"no node is left to remove; {names[0]}: {words[names[0]]}")
    return found


class ConsolidationSearch:
    """Finds which of `nodes` can be removed, and why others stay; the model does not change.

    None of `nodes` is virtual (`machines`). `rules` and the budgets of `planner` can forbid the
    removal of a node. `prices` maps nodes to hourly prices. Of several plans, the one whose nodes
    have the highest total price is taken. If there are no prices, the plan with the most nodes is
    taken. `planner.deletes_nodes` is set, because the chosen nodes are deleted after their drain.
    """

    def __init__(
        self,
        planner: DrainPlanner,
        rules: AutoscalerRules,
        nodes: Sequence[str],
        prices: Mapping[str, float],
        progress: Progress,
    ) -> None:
        """Find out which of `nodes` the rules keep; no plan is made yet.

        `prices` are the hourly prices of nodes, by name; nodes without a known price are missing.
        """
        self._planner, self._rules, self._nodes = planner, rules, nodes
        self._prices, self._progress = prices, progress
        planner.deletes_nodes = True
        # Pods with a negative priority are placeholders, which keep nodes in reserve. The plan must
        # not remove these nodes.
        planner.ignores_negative = False
        jobs = jobs_of(planner)
        self._blockers = {name: _rule_blockers(planner, rules, jobs, name) for name in nodes}
        self._free = [name for name in nodes if not self._blockers[name]]
        self._bound = fewest_nodes(planner.model, nodes)
        most = len(nodes) - self._bound.count
        self._search = RemovalSearch(planner, self._free, prices, most, progress)

    def plan(self, limit: int | None = None) -> ConsolidationPlan:
        """Return a plan that removes at most `limit` nodes, still without reasons (`explained`)."""
        return self.plan_of(self._search.best(limit), limit)

    def plan_of(self, choice: RemovalChoice, limit: int | None = None) -> ConsolidationPlan:
        """Return the plan that removes the nodes of `choice`, which has at most `limit` nodes."""
        plan = placed_drains(self._planner, choice.chosen, self._progress)
        plan.blocked_flags = ()  # chosen nodes that cannot be emptied are not blocked, but needed
        left_out = sum(is_virtual(one.labels) for one in self._planner.model.table.nodes())
        return ConsolidationPlan(
            self._planner.model.table.count - left_out,
            len(set(self._nodes)),
            plan,
            self._bound,
            prices=self._prices,
            limit=limit,
            untried=len(self._free) - len(choice.chosen) - len(choice.failed),
            left_out=left_out,
            has_autoscaler=not self._rules.is_assumed,
            choice=choice,
            labels={name: self._planner.model.node(name).labels for name in choice.chosen},
            gangs=self._planner.gangs,
        )

    def explained(self, found: ConsolidationPlan) -> ConsolidationPlan:
        """Return `found`, a result of `plan`, with the reasons why the other nodes stay."""
        planner, progress, plan = self._planner, self._progress, found.plan
        chosen = found.choice.chosen
        failed = {one.node: one for one in reversed(plan.blockers)} | found.choice.failed
        plan.blockers.clear()  # a chosen node that cannot be emptied in the plan counts as needed
        left = set(chosen).difference(found.removable)
        names = [name for name in failed if name not in left]
        needed, unplaced = _tried_alone(planner, names, failed, progress)
        needed = [*(name for name in chosen if name in left), *needed]
        blockers = [one for name in self._nodes for one in self._blockers[name]]
        with _after(planner, plan):
            stuck = _stuck_without_rules(planner, blockers, progress)
        needed_anyway, also_unplaced = _tried_alone(planner, list(stuck), stuck, progress)
        blocker_by_node = failed | stuck
        return replace(
            found,
            blockers=[
                _of_waiting_gang(one) if one.pod in planner.reserved else one
                for one in (
                    *blockers,
                    *_with_remedies(planner, plan, [*unplaced, *also_unplaced]),
                )
            ],
            needed=needed,
            needed_anyway=needed_anyway,
            blocker_by_node={
                name: blocker_by_node[name]
                for name in (*needed, *needed_anyway)
                if name in blocker_by_node
            },
        )


def consolidate_safely(
    find: Callable[[int | None], ConsolidationPlan],
    explain: Callable[[ConsolidationPlan], ConsolidationPlan],
    planner: DrainPlanner,
    limit: int | None,
) -> ConsolidationPlan:
    """Return a plan of at most `limit` nodes; if the plan is not safe, try other plans.

    A plan is safe if a simulated run of its drains is safe (`DrainRun.is_safe`).

    `find` returns a plan of at most the given number of nodes, with the runs of its drains.
    `explain` adds the reasons why the other nodes stay; `explain` is called for only one plan. If
    the plan is not safe, and the pods of some nodes must be placed in a certain order, a second
    plan leaves these nodes in service. If there is still no safe plan for lack of room
    (`_lacks_room`), plans with 1, 2, 4, ... fewer nodes are tried. If none of these is safe, the
    result is the plan that was found before them.
    """
    found = find(limit)
    if found.plan.is_order_unsafe:
        planner.reorders = False
        found = find(limit)
    fewer, smaller = 1, found
    while _lacks_room(smaller.plan) and fewer < len(found.removable):
        smaller = find(len(found.removable) - fewer)
        fewer *= 2
    fewer_are_safe = smaller is not found and smaller.plan.best is not None
    found = explain(found)
    if not fewer_are_safe:
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
    """Return (the nodes in `names` that could be emptied alone, the blockers of the other nodes).

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

    The result maps each of these nodes to the blocker that `choose_nodes` returns. Nodes whose
    blockers have the same causes are emptied together, because a user who ignores these causes
    (`--ignore`) unblocks them all.
    """
    by_node: dict[str, set[BlockCause]] = {}
    for one in blockers:
        if one.cause is not BlockCause.DELETED:
            by_node.setdefault(one.node, set()).add(one.cause)
    groups: dict[frozenset[BlockCause], list[str]] = {}
    for name, causes in by_node.items():
        groups.setdefault(frozenset(causes), []).append(name)
    found = dict[str, Blocker]()
    for names in groups.values():
        no_jobs = JobRoom((), planner.model.now, planner.model.stop_exit_code)
        found |= choose_nodes(planner, names, no_jobs, progress).failed
    return found


def _with_remedies(
    planner: DrainPlanner, plan: DrainPlan, blockers: Sequence[Blocker]
) -> Iterator[Blocker]:
    """Yield `blockers`, each with the change that lets its pod fit a node that the plan keeps.

    The change is searched for in the state after the drains of `plan`, and becomes the `edit` of
    the blocker. `edit` is "" if no change is found. If pods of further workloads on the node fit no
    other node either, one change is not enough to empty the node. So the blockers of these
    workloads follow. If the node can be emptied in this state, the blocker is yielded unchanged.
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


def _of_waiting_gang(blocker: Blocker) -> Blocker:
    """Return `blocker` with the cause WAITING_GANG and without an edit.

    `blocker` is about a waiting pod of a gang that has room only on the blocked node. An edit would
    only move this room to another node.
    """
    why = f"a waiting pod of the gang has room only here ({blocker.why})"
    return replace(blocker, cause=BlockCause.WAITING_GANG, why=why, edit="")


def _rule_blockers(
    planner: DrainPlanner, rules: AutoscalerRules, jobs: JobRoom, name: str
) -> list[Blocker]:
    node = planner.model.node(name).node
    if why := deletion_words(node):  # without a drain, nothing else can block it
        return [Blocker(name, "", BlockCause.DELETED, f"node/{name}", why)]
    found = list(rules.node_blockers(node))
    if is_control_plane(node):
        owner, why = f"node/{name}", "it runs the control plane"
        found.append(Blocker(name, "", BlockCause.CONTROL_PLANE, owner, why))
    failing = job_blocker(planner, jobs, name)
    found += [] if failing is None else [failing]
    found += refusal_blockers(planner, name)
    for pod in planner.evicted(name):
        if is_leaving(pod):
            continue
        blocker = rules.pod_blocker(name, pod.pod)
        if blocker is not None:
            found.append(blocker)
    return found + planner.refusals(name)


# --- the answer -------------------------------------------------------------------------------


def consolidate_answer(
    found: ConsolidationPlan, model: ClusterModel, source: str, notes: tuple[str, ...]
) -> TabularAnswer:
    """Return the answer of `fairlead consolidate`."""
    best = found.plan.best
    facts: Json = {
        "nodes": found.total,
        "virtual_nodes": found.left_out,
        "can_go": len(found.removable),
        "at_most": found.most,
        "max": found.limit,
        "untried": found.untried,
        "too_many": None if found.unsafe is None else _too_many(found.unsafe),
        "bound_by": found.bound.binds,
        "needed": found.needed,
        "needed_anyway": found.needed_anyway,
        "waiting_gangs": [
            {"workload": one.workload, "waiting": one.waiting, "fitting": len(one.fitting)}
            for one in found.gangs
        ],
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
    """Yield the steps that drain the nodes (`plan_steps`), and the step that deletes them."""
    steps = tuple(plan_steps(found.plan, found.removable))
    yield from steps
    if steps:
        yield delete_step({name: found.labels.get(name, {}) for name in found.removable})


def _verdict(found: ConsolidationPlan) -> str:
    count, nodes = len(found.removable), _nodes_of(found)
    if not count:
        # The largest group of nodes with the same causes, if `kubectl drain` ignores all of these
        # causes. A drain by hand could empty these nodes together.
        kept = _kept_only_by(found).items()
        by_hand = max((number for causes, number in kept if causes <= NOT_OF_KUBECTL), default=0)
        none = f"None of {nodes} can"
        if found.candidates == 1:
            none = f"{nodes if found.is_about_some else 'The only node'} cannot"
        if not by_hand:
            return f"{none} be removed now."
        could = "it could" if found.candidates == 1 else f"at least {by_hand:,} could"
        return (
            f"{none} be removed now by the rules of Cluster Autoscaler; {could} be drained by hand."
        )
    share = f"{100 * count / found.total:.0f}%"
    if found.is_about_some:
        share += " of all nodes"
    is_named = found.is_about_some and found.candidates == 1
    which = nodes if is_named else f"{count:,} of {nodes}"
    if found.plan.runs and found.plan.best is None:
        drains = "its drain is" if count == 1 else "their drains are"
        return f"{which} could be removed ({share}), but {drains} not safe."
    reservation = "" if found.plan.best is None else image_reservation(found.plan.best)
    if reservation:
        return f"{which} could be removed ({share}){reservation}."
    money = ""
    if found.saving:
        per_month = found.saving * HOURS_PER_MONTH
        money = f", which saves {found.saving:,.2f} per hour ({per_month:,.0f} per month)"
    return f"{which} can be removed now ({share}){money}."


def _nodes_of(found: ConsolidationPlan) -> str:
    """Return words for the nodes from which the plan chooses, such as "the 3 selected nodes".

    If the user selected one node, the result is its name.
    """
    if not found.is_about_some:
        return counted(found.total, "node")
    if found.candidates > 1:
        return f"the {found.candidates:,} selected nodes"
    names = (*found.removable, *(one.node for one in found.blockers), *found.needed)
    return names[0] if names else "The selected node"


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
        sentences += single_findings(stopped_by(best))
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
    sentences += _kept_room(found)
    if found.left_out:
        verb = "is" if found.left_out == 1 else "are"
        sentences.append(f"{counted(found.left_out, 'virtual node')} {verb} left out.")
    sentences += _rules_to_ignore(found)
    sentences += _limit(found)
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
    others = found.candidates - len(found.removable)
    if len(blocked) == found.candidates > 1:
        yield f"All {found.candidates:,} are blocked."
    elif found.candidates == 1 and not found.removable and groups:
        yield f"It {groups[0][1]}."
    elif found.removable and len(groups) == 1 and groups[0][0] == others:
        selected = "selected " if found.is_about_some else ""
        which = f"{selected}node" if others == 1 else f"{others:,} {selected}nodes"
        yield f"The other {which} {groups[0][1]}."
    elif groups:
        parts = [f"{count:,} {what}" for count, what in groups]
        yield f"{'Of the others, ' if found.removable else ''}{' and '.join(parts)}."
    if anyway:
        them, their = ("it", "its") if len(anyway) == 1 else ("them", "their")
        yield (
            f"{listed(anyway)} would have to stay even if nothing blocked {them}. After the "
            f"removal of the others, {their} pods would not all fit elsewhere."
        )


def _kept_room(found: ConsolidationPlan) -> Iterator[str]:
    """Yield a sentence about the waiting gangs for whose members the plan keeps room.

    If no node is blocked because of this room, the sentence names the option that gives up the
    room. If a node is blocked because of this room, `_rules_to_ignore` names the option.
    """
    if not found.gangs:
        return
    parts = []
    for gang in found.gangs:
        fits, which = len(gang.fitting), f"the {counted(gang.waiting, 'waiting pod')}"
        parts.append(
            f"{which if fits == gang.waiting else f'{fits:,} of {which}'} of {gang.workload}"
        )
    is_one = [gang.waiting for gang in found.gangs] == [1]
    start = "starts only with its" if is_one else "start only with their"
    keeps_nodes = any(one.cause is BlockCause.WAITING_GANG for one in found.blockers)
    option = "" if keeps_nodes else f"; --ignore {IgnoredRule.WAITING_GANGS} does not"
    yield f"The plan keeps room for {listed(parts)}, which {start} gang{option}."


def _kept_only_by(found: ConsolidationPlan) -> Counter[frozenset[BlockCause]]:
    """Return, for each set of causes, the number of nodes that stay only because of this set.

    A node is counted under the set of all its causes. Nodes in `found.needed_anyway` are not
    counted. If the causes of a set did not exist, all nodes that are counted under this set could
    be emptied together, after the nodes of the plan.
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
    volumes = " The drain deletes emptyDir volumes, and leaves the data of hostPath volumes behind."
    loss = volumes if BlockCause.LOCAL_STORAGE in causes else ""
    if found.has_autoscaler:
        yield f"A drain by hand does not follow the rules of Cluster Autoscaler.{loss}"
    else:
        yield (
            "The dump has no Cluster Autoscaler; its rules apply here with their default flags. A "
            f"drain by hand does not follow them.{loss}"
        )


def _limit(found: ConsolidationPlan) -> Iterator[str]:
    """Yield a sentence about the largest number of nodes that any plan could remove.

    Yield nothing if this number is the number of nodes that the user selected.
    """
    count, candidates, binds = found.bound.count, found.candidates, found.bound.binds
    stay = counted(count, "node")
    if found.is_about_some:  # nodes that are no candidates stay, too
        which = f"{count:,} of the {candidates:,} nodes" if candidates > 1 else "the only node"
        stay = f"{which} that the plan may remove"
    if not count and found.is_about_some:
        return
    if not count:
        why = "the pods that controllers would create again need none of them"
    elif binds == PODS_PER_NODE:
        why = f"with the limits of pods per node, the pods need {stay}"
    elif binds == NODE_GROUPS:
        why = f"node selectors and taints restrict pods to groups of nodes, so they need {stay}"
    elif binds.count("/") < 2:  # `binds` is a resource; a workload would be kind/namespace/name
        why = f"the {binds} requests of the pods need {stay}"
    else:
        why = f"the pods of {binds} exclude each other on a node, so they need {stay}"
    most = f"more than {counted(found.most, 'node')}" if found.most else "a node"
    yield f"No plan can remove {most}: {why}."


def _cause_rows(found: ConsolidationPlan) -> list[Json]:
    """Return a row for each cause; the causes that alone keep the most nodes come first."""
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
