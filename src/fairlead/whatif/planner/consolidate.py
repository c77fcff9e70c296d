"""consolidate: finds the nodes that can be removed, and the reasons why other nodes stay.

    1  rules      nodes with a pod, or an annotation, that forbids their removal are blocked
    2  choice     the other nodes are tried one after another: a node is chosen if the scheduler
                  finds a place for its pods on nodes that are not chosen. This is done in several
                  orders: little load for the price first, little load first, few pods first; the
                  choice that saves most is taken
    3  plan       from the original state, the chosen nodes are cordoned together and emptied one
                  after another, so that each pod moves once (`plan_drains`); a node that fails in
                  this step stays
    4  proof      after the plan, the nodes that a rule blocks are emptied, too. If this fails, the
                  node must stay even without the rule, because a pod fits nowhere else, or because
                  pods need the node's room

Chosen nodes are cordoned before they are drained. Otherwise the scheduler, which prefers empty
nodes, would place pods on the nodes that are removed next. The result is the best of these orders,
not necessarily the largest possible number of nodes; `most` is a proven upper bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.api.well_known_label import INSTANCE_TYPE
from fairlead.engine.state.resource_columns import CPU, MEMORY
from fairlead.whatif.change.kubectl_drain import needed_flags
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.node_group import HOURS_PER_MONTH
from fairlead.whatif.planner.cluster_model import ClusterModel, moves_with_drain
from fairlead.whatif.planner.node.node_bound import NodeBound, fewest_nodes
from fairlead.whatif.planner.node_drain.autoscaler_rule import RULE_OF, AutoscalerRules
from fairlead.whatif.planner.node_drain.blocker_table import blocker_tables
from fairlead.whatif.planner.node_drain.drain_plan import (
    DrainPlan,
    flag_findings,
    moves_table,
    order_findings,
    pace_table,
    plan_drains,
    unsafe_findings,
)
from fairlead.whatif.planner.node_drain.drain_planner import (
    BlockCause,
    Blocker,
    DrainPlanner,
    PlannedDrain,
)
from fairlead.whatif.planner.node_drain.drain_run import pace_seconds
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
    counted,
    listed,
)
from fairlead.whatif.run.progress import Progress


class ConsolidationPlan(Struct):
    """The `plan` of the nodes that can be removed, and the reasons why the other nodes stay.

    `total` is the number of nodes in the cluster, `candidates` the number of nodes that may be
    removed. `blockers` are rules, and pods that fit no other node even if only their node is
    emptied. A node in `needed` has no such pod. It cannot be removed in addition to the nodes of
    the plan, because their pods need its room. A node in `needed_anyway` is blocked by a rule or a
    budget, and would be in `needed` without it. `prices` maps nodes to hourly prices; nodes without
    a known price are missing. `bound` is the minimum number of candidates that must stay.
    """

    total: int
    candidates: int
    plan: DrainPlan
    bound: NodeBound
    blockers: list[Blocker] = field(default_factory=list)
    needed: list[str] = field(default_factory=list)
    needed_anyway: list[str] = field(default_factory=list)
    prices: Mapping[str, float] = field(default_factory=dict)

    @property
    def most(self) -> int:
        """An upper bound on the number of nodes that can be removed."""
        return self.candidates - self.bound.count

    @property
    def going(self) -> list[str]:
        """The nodes that can be removed, in the order of their drains."""
        return [drain.node for drain in self.plan.drains]

    @property
    def saving(self) -> float:
        """The cost per hour of the nodes that can be removed."""
        return sum(self.prices.get(name, 0.0) for name in self.going)


def consolidate(
    planner: DrainPlanner,
    rules: AutoscalerRules,
    nodes: Sequence[str],
    prices: Mapping[str, float],
    progress: Progress,
) -> ConsolidationPlan:
    """Choose the removable nodes among `nodes`; the model is unchanged afterwards.

    The `rules` and the budgets of `planner` block nodes. `prices` are per hour by node; a choice of
    nodes with a higher total price is better.
    """
    model = planner.model
    blockers: list[Blocker] = []
    free = []
    for name in nodes:
        found = _rule_blockers(planner, rules, name)
        blockers += found
        if not found:
            free.append(name)
    chosen, failed = _best_choice(planner, free, prices, progress)
    plan = plan_drains(planner, chosen, progress)
    plan.blockers.clear()  # the room of nodes that fail in the second round is needed
    going = [drain.node for drain in plan.drains]
    plan.flags = needed_flags(pod.pod for name in going for pod in model.node(name).pods.values())
    needed, unplaced = _tried_alone(planner, failed)
    needed = [*(name for name in chosen if name not in going), *needed]
    with _after(planner, plan):
        stuck = _stuck_without_rules(planner, blockers, progress)
    needed_anyway, also_unplaced = _tried_alone(planner, stuck)
    blockers += _with_remedies(planner, plan, [*unplaced, *also_unplaced])
    return ConsolidationPlan(
        model.table.count,
        len(nodes),
        plan,
        fewest_nodes(model, nodes),
        blockers,
        needed,
        needed_anyway,
        prices,
    )


def _tried_alone(
    planner: DrainPlanner, failed: Mapping[str, str]
) -> tuple[list[str], list[Blocker]]:
    """Return those of `failed` that are needed only for their room, and blockers of the others.

    `failed` maps each node that could not be emptied after others to the workload of the pod that
    did not fit, "" if the total room was too small. The pod is tried again while its node is the
    only one that is emptied.
    """
    needed: list[str] = []
    blockers: list[Blocker] = []
    for name, workload in failed.items():
        alone = planner.fits_first(name, workload)
        if alone is None:
            with planner.model.hypothesis():
                alone = planner.empty(name)
        if isinstance(alone, PlannedDrain):
            needed.append(name)
        else:
            blockers.append(alone)
    return needed, blockers


@contextmanager
def _after(planner: DrainPlanner, plan: DrainPlan) -> Iterator[None]:
    """Let the block see the model after the plan's drains; the end of the block reverts them."""
    with planner.model.hypothesis():
        for drain in plan.drains:
            planner.model.cordon(drain.node)
        for drain in plan.drains:
            planner.empty(drain.node)
        yield


def _stuck_without_rules(
    planner: DrainPlanner, blockers: Sequence[Blocker], progress: Progress
) -> dict[str, str]:
    """Return the nodes of `blockers` whose pods find no place even if the blockers are removed.

    The values are the workloads of the pods, as `_choose` returns them.

    Nodes with the same causes are emptied one after another, because `--ignore` removes a cause of
    all nodes.
    """
    by_node: dict[str, set[BlockCause]] = {}
    for one in blockers:
        by_node.setdefault(one.node, set()).add(one.cause)
    groups: dict[frozenset[BlockCause], list[str]] = {}
    for name, causes in by_node.items():
        groups.setdefault(frozenset(causes), []).append(name)
    found = dict[str, str]()
    for names in groups.values():
        found |= _choose(planner, names, progress)[1]
    return found


def _with_remedies(
    planner: DrainPlanner, plan: DrainPlan, blockers: Sequence[Blocker]
) -> Iterator[Blocker]:
    """Yield `blockers` with changes that help after the plan's drains, on the nodes that stay."""
    if not blockers:
        return
    with _after(planner, plan):
        for one in blockers:
            with planner.model.hypothesis():
                found = planner.empty(one.node, with_remedy=True, new_nodes=False)
            if isinstance(found, Blocker) and found.pod == one.pod:
                yield replace(one, edit=found.edit)
            else:
                yield one


def _rule_blockers(planner: DrainPlanner, rules: AutoscalerRules, name: str) -> list[Blocker]:
    on_node = rules.node_blocker(planner.model.node(name).node)
    found = [] if on_node is None else [on_node]
    for pod in planner.evicted(name):
        blocker = rules.pod_blocker(name, pod.pod)
        if blocker is not None:
            found.append(blocker)
    return found + planner.budget_blockers(name)


Rank = Callable[[str], tuple[float, str]]


def _best_choice(
    planner: DrainPlanner, names: Sequence[str], prices: Mapping[str, float], progress: Progress
) -> tuple[list[str], dict[str, str]]:
    """Return what `_choose` returns for the best of several orders of the nodes."""
    found = [
        _choose(planner, sorted(names, key=rank), progress)
        for rank in _ranks(planner.model, prices)
    ]
    return max(found, key=lambda choice: _worth(choice[0], prices))


def _worth(names: Sequence[str], prices: Mapping[str, float]) -> tuple[float, int]:
    return sum(prices.get(name, 0.0) for name in names), len(names)


def _ranks(model: ClusterModel, prices: Mapping[str, float]) -> list[Rank]:
    """Return sort keys by which nodes are tried; each ends with the name, so the order is total."""
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
    planner: DrainPlanner, names: Sequence[str], progress: Progress
) -> tuple[list[str], dict[str, str]]:
    """Return (nodes that can be emptied together, workloads that keep the other nodes).

    The nodes are tried one by one. The workload is that of a pod that did not fit, "" if the total
    room was too small.
    """
    chosen: list[str] = []
    failed: dict[str, str] = {}
    latest = ""
    progress.begin("trying nodes", len(names))
    with planner.model.hypothesis():
        for number, name in enumerate(names):
            progress.reach(number, 0)
            if not planner.has_room_elsewhere(name):
                failed[name] = ""
                continue
            # Most nodes are kept by pods of the workload that kept the node before them.
            found = planner.fits_first(name, latest)
            if not isinstance(found, Blocker):
                found = planner.empty(name)
            if isinstance(found, PlannedDrain):
                chosen.append(name)
            else:
                failed[name] = latest = found.owner
    return chosen, failed


# --- the answer -------------------------------------------------------------------------------


def consolidate_answer(
    found: ConsolidationPlan, model: ClusterModel, source: str, notes: tuple[str, ...]
) -> TabularAnswer:
    """Return the answer of `fairlead consolidate`."""
    best = found.plan.best
    facts: Json = {
        "nodes": found.total,
        "can_go": len(found.going),
        "at_most": found.most,
        "bound_by": found.bound.binds,
        "needed": found.needed,
        "needed_anyway": found.needed_anyway,
        "saving_per_hour": round(found.saving, 4) if found.prices else None,
        "saving_per_month": round(found.saving * HOURS_PER_MONTH, 2) if found.prices else None,
        "at_once": None if best is None else best.pace.at_once,
        "takes_s": None if best is None else pace_seconds(best.took),
    }
    moves = [
        {"pod": move.pod, "from": move.origin, "to": move.target}
        for drain in found.plan.drains
        for move in drain.moves
    ]
    tables = (
        _causes(found),
        *blocker_tables(found.blockers),
        _going(found, model),
        pace_table(found.plan.runs),
        moves_table(moves),
    )
    return TabularAnswer(
        "Consolidation", source, _verdict(found), tuple(_findings(found)), tables, facts, notes
    )


def _verdict(found: ConsolidationPlan) -> str:
    count, total = len(found.going), counted(found.total, "node")
    if not count:
        return f"None of {total} can go now."
    share = f"{100 * count / found.total:.0f}%"
    if found.plan.runs and found.plan.best is None:
        return f"{count:,} of {total} could go ({share}), but no pace of their drains is safe."
    money = ""
    if found.saving:
        per_month = found.saving * HOURS_PER_MONTH
        money = f", which saves {found.saving:,.2f} per hour ({per_month:,.0f} per month)"
    return f"{count:,} of {total} can go now ({share}){money}."


def _findings(found: ConsolidationPlan) -> list[str]:
    sentences = []
    best = found.plan.best
    if best is not None and found.going:
        sentences.append(
            f"Cordon them all, then drain them {best.pace.at_once} at a time in the order below. "
            f"This takes {for_readers(best.took or 0)}."
        )
    elif found.plan.runs:
        sentences += unsafe_findings(found.plan.runs)
    sentences += order_findings(found.plan.drains)
    sentences += flag_findings(found.plan.flags)
    blocked = len({one.node for one in found.blockers})
    others = "Of the others" if found.going else "Of these"
    parts = [f"{blocked:,} {'is' if blocked == 1 else 'are'} blocked"] if blocked else []
    if found.needed:
        parts.append(f"{len(found.needed):,} must stay to have room for the pods")
    if parts:
        sentences.append(f"{others}, {' and '.join(parts)}.")
    if found.needed_anyway:
        names, them = listed(found.needed_anyway), "it" if len(found.needed_anyway) == 1 else "them"
        sentences.append(
            f"Even if nothing blocked {them}, {names} must stay to have room for pods."
        )
    sentences += _rules_to_ignore(found)
    sentences.append(_limit(found))
    return sentences


def _rules_to_ignore(found: ConsolidationPlan) -> Iterator[str]:
    """Yield a sentence for each rule that alone keeps nodes, with the option to ignore it."""
    for row in _cause_rows(found):
        rule = RULE_OF.get(BlockCause(row["cause"]))
        if rule is not None and row["alone"]:
            keeps = f"Only this keeps {counted(row['alone'], 'node')}: {row['cause']}."
            yield f"{keeps} --ignore {rule.value} plans without the rule."


def _limit(found: ConsolidationPlan) -> str:
    most, binds = counted(found.most, "node"), found.bound.binds
    if not found.bound.count:
        why = "the pods that controllers would create again need none of them"
        return f"No plan can remove more than {most}: {why}."
    stay = counted(found.bound.count, "node")
    if binds.count("/") < 2:  # `binds` is a resource; a workload would be kind/namespace/name
        why = f"the sum of the {binds} requests needs {stay}"
    else:
        why = f"the pods of {binds} exclude each other on a node, so they need {stay}"
    return f"No plan can remove more than {most}: {why}."


def _cause_rows(found: ConsolidationPlan) -> list[Json]:
    by_cause: dict[BlockCause, set[str]] = {}
    only: dict[str, set[BlockCause]] = {}
    for one in found.blockers:
        by_cause.setdefault(one.cause, set()).add(one.node)
        only.setdefault(one.node, set()).add(one.cause)
    return [
        {
            "cause": cause.value,
            "nodes": len(nodes),
            "alone": sum(only[name] == {cause} for name in nodes.difference(found.needed_anyway)),
        }
        for cause, nodes in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0]))
    ]


def _causes(found: ConsolidationPlan) -> ResultTable:
    columns = (
        ResultColumn("nodes", "nodes", NUMBER),
        ResultColumn("alone", "kept only by this", NUMBER),
        ResultColumn("cause", "cause"),
    )
    return ResultTable("causes", "what keeps nodes", columns, _cause_rows(found))


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
    return ResultTable("going", "nodes that can go", columns, rows, 8)
