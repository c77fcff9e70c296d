"""The answer of `fairlead size`: the nodes, their cost, and the lower bound on the cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import floor
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.float_sum import float_sum
from fairlead.whatif.configuration.autoscaling.open_cost_price import spot_label
from fairlead.whatif.outcome.autoscaling.node_group import HOURS_PER_MONTH
from fairlead.whatif.planner.cluster_size.size_result import SizeResult, TodaysLoss
from fairlead.whatif.planner.cluster_size.survival import Survival
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    TabularAnswer,
)
from fairlead.whatif.snapshot.control_plane import CONTROL_PLANE

_HELD: Final = "pods that stay pending while the Node objects of failed nodes exist"


class SizeQuestion(Struct, frozen=True):
    """The question of `fairlead size`."""

    replaced: int  # the number of nodes to replace
    kept: int  # the number of nodes that stay
    cost: float  # the present cost per hour of the nodes to replace
    survival: Survival  # --survive
    headroom: float  # --headroom
    effort: int  # --effort
    is_priced: bool  # whether the user gives prices
    estimated: Sequence[str]  # if the user gives prices, the types without a stated price
    control_plane: int = 0  # the number of replaced nodes that run the control plane
    virtual: Sequence[str] = ()  # the kept virtual nodes, such as Fargate nodes
    # For each replaced spot node, the label (`key=value`) that marks it as a spot node.
    spot: Sequence[str] = ()
    # If the user gives prices, the replaced nodes without an instance type.
    untyped: Sequence[str] = ()
    is_changed: bool = False  # whether the question is about the cluster after a change


def size_answer(
    question: SizeQuestion,
    found: SizeResult,
    source: str,
    notes: tuple[str, ...],
    limits: tuple[str, ...] = (),
) -> TabularAnswer:
    """Return the answer to `question`; `found` is the result of the search.

    `limits` are sentences about limits of NodePools and node groups that the nodes violate. The
    answer is no if a pod fits no node, or if the nodes do not survive the failures.
    """
    facts: Json = {
        "nodes_today": question.replaced,
        "nodes_kept": question.kept,
        "nodes": len(found.nodes),
        "cost_per_hour": round(found.cost, 4),
        "cost_per_hour_today": round(question.cost, 4),
        "cost_per_hour_at_least": round(found.bound.cost, 4),
        "prices": "stated" if question.is_priced else "estimated from cores and memory",
        "estimated_prices": list(question.estimated),
        "survives": _survival_words(question.survival),
        "failures_tried": found.tried,
        "node_sets_tried": found.sets_covered,
        "node_sets": found.sets,
        "headroom": question.headroom,
        "effort": question.effort,
        "scheduling_cycles": found.cycles,
        "tried_all_changes": found.tried_all_changes,
        "waiting_at_once": found.waiting_at_once,
        "waiting_today": found.waiting_today,
        "pending_today_after_failure": _pending_today(found),
    }
    tables = (
        _nodes(question, found),
        _binds(found),
        _obstacles(found),
        _pods("unplaceable", "pods that fit no new or kept node", found.unplaceable.items(), "why"),
        _failure_table("pinned", "pods that do not survive a failure", found.pinned),
        _failure_table("held", _HELD, {one: pod.constraints for one, pod in found.held.items()}),
    )
    return TabularAnswer(
        "Size",
        source,
        _verdict(question, found),
        (*limits, *_findings(question, found)),
        tables,
        facts,
        notes,
        is_no=bool(found.unplaceable) or not found.survives,
    )


def _verdict(question: SizeQuestion, found: SizeResult) -> str:
    also = _survived(question.survival, found)
    replaced, money = f"{question.replaced:,}", ""
    if question.is_priced:
        money = f" for {found.cost:,.2f} per hour"
        replaced += f" for {question.cost:,.2f}"
    what = "everything"
    if found.unplaceable:
        what = f"all but {counted(len(found.unplaceable), 'pod')}"
    if found.unplaceable and not found.nodes and not question.kept:
        count = len(found.unplaceable)
        which = "The pod fits no" if count == 1 else f"None of {count:,} pods fits a"
        return f"{which} new node on offer (today {replaced})."
    if question.kept:  # "today" could mean all present nodes, or only the replaced ones
        new, kept = counted(len(found.nodes), "new node"), counted(question.kept, "kept node")
        return f"{new}{money} in place of {replaced}, and {kept}, run {what}{also}."
    verb = "runs" if len(found.nodes) == 1 else "run"
    nodes = counted(len(found.nodes), "node")
    return f"{nodes}{money} {verb} {what}{also} (today {replaced})."


def _survived(survival: Survival, found: SizeResult) -> str:
    """Return the end of the verdict: the failures after which the pods still run.

    Example: `, even after the loss of any zone`. Returns "" if no failures were requested, or if a
    failure stops pods that are not in `found.pinned`. For the pods in `found.pinned`, no node on
    offer is suitable after the failure.
    """
    words = _survival_words(survival)
    if not words or not found.survives:
        return ""
    also = "even"
    if found.pinned:
        lost = {pod for pod, _ in found.pinned}.union(found.unplaceable)
        also = f"and all but {counted(len(lost), 'pod')} even"
    tried = ""
    if found.sets_covered < found.sets:
        tried = f", as far as tried ({found.sets_covered:,} of {found.sets:,} sets)"
    once = ", once the Node objects of failed nodes are deleted" if found.held else ""
    return f", {also} after the loss of any {words}{once}{tried}"


def _survival_words(survival: Survival) -> str:
    """Return the failures as words that can follow "any", such as `zone or 2 nodes`."""
    parts = ["zone"] if survival.zones else []
    if survival.nodes == 1:
        parts.append("node")
    elif survival.nodes:
        parts.append(f"{survival.nodes} nodes")
    return " or ".join(parts)


def _findings(question: SizeQuestion, found: SizeResult) -> Iterator[str]:
    yield from _prices(question, found)
    yield from _control_plane(question.control_plane)
    yield from _virtual(question.virtual)
    yield from _spot(question, found)
    if found.cost and found.bound.cost:
        share = floor(1000 * found.bound.cost / found.cost) / 10
        limit = f"The cheapest possible set costs at least {share:.1f}% of this set (proven)"
        more = f"; --effort {question.effort * 10} searches longer"
        if found.tried_all_changes:
            more = (
                ". The search has tried all its changes, so a larger --effort gives the same answer"
            )
        yield (
            "No set of these types is cheaper (proven)." if found.is_proven else f"{limit}{more}."
        )
    if not found.survives:
        yield "No nodes were found whose pods survive all failures of --survive."
    elif found.sets_covered < found.sets:
        yield (
            f"Not every set of {question.survival.nodes} nodes was tried, only those of the "
            "fullest and the largest nodes, overall and in each pool and zone. The loss of another "
            "set may leave pods without a node."
        )
    if found.pinned:
        pods = sorted({pod for pod, _ in found.pinned})
        names = listed(pods, 2)
        yield f"{counted(len(pods), 'pod')} cannot survive such a failure on any nodes: {names}."
    yield from _today(question, found)
    yield from _zoneless(question.survival, found)
    yield from _held(found)
    if found.waiting_today:
        verb = "waits" if found.waiting_today == 1 else "wait"
        where = "On today's nodes" if question.is_changed else "Today"
        yield f"{where}, {found.waiting_today:,} of the pods {verb} for a node."
    if question.headroom:
        yield f"{question.headroom:.0%} of the cpu and memory of each new node stays free."
    if found.waiting_at_once:
        everything, more = "Everything runs", ""
        if found.unplaceable:  # these pods do not run in any order
            everything, more = "The other pods run", " more"
        count = found.waiting_at_once
        waiting = f"{count:,}{more} {'pod' if count == 1 else 'pods'}"
        yield (
            f"{everything} if the large pods are placed first. If all pods were created at the "
            f"same time, {waiting} would stay pending, because the scheduler would spread the "
            "first pods, and no node would have room for the last large pods."
        )


def _prices(question: SizeQuestion, found: SizeResult) -> Iterator[str]:
    if not question.is_priced:
        yield (
            "Nodes are compared by cores and memory, because no prices are known; "
            "--instance-types FILE states prices."
        )
        return
    if not found.unplaceable:  # otherwise the new nodes run less than today's
        saved = round((question.cost - found.cost) * HOURS_PER_MONTH)
        amount = f"{abs(saved):,}"
        if saved == 0:
            yield "The cost per month stays the same."
        else:
            yield f"That {f'saves {amount}' if saved > 0 else f'costs {amount} more'} per month."
    if question.estimated:
        yield (
            f"Estimated from cores and memory, because --instance-types states no price: "
            f"{listed(question.estimated)}."
        )
    if question.untyped:
        yield (
            "The cost of today's nodes without an instance type is estimated from cores and "
            f"memory: {listed(question.untyped)}."
        )


def _held(found: SizeResult) -> Iterator[str]:
    """Yield a sentence if spread constraints keep pods pending while failed Nodes still exist."""
    if not found.held:
        return
    most = max(Counter(failure for _, failure in found.held).values())
    stays = "stays" if most == 1 else "stay"
    rules = sorted({(one.workload, one.constraints) for one in found.held.values()})
    named = listed([f"{workload} ({constraints})" for workload, constraints in rules], 2)
    yield (
        f"Up to {counted(most, 'pod')} {stays} pending while the Node objects of failed nodes "
        "exist, although other nodes have room. The failed nodes still count for the topology "
        f"spread of {named}. With nodeTaintsPolicy: Honor, they do not count."
    )


def _pending_today(found: SizeResult) -> int | None:
    """Return how many pods the worst failure of today's nodes leaves pending.

    Return None if no failure was tried on today's nodes.
    """
    if not found.tried_today:
        return None
    losses = _losses_today(found)
    return len(losses[0].pods) if losses else 0


def _losses_today(found: SizeResult) -> list[TodaysLoss]:
    """Return the failures that today's nodes do not survive; the most pending pods come first.

    Pods in `found.pinned` do not count, because no node on offer could hold them after a failure.
    """
    pinned = {pod for pod, _ in found.pinned}
    losses = [
        TodaysLoss(loss.failed, {pod: loss.pods[pod] for pod in loss.pods if pod not in pinned})
        for loss in found.losses_today
    ]
    return sorted((loss for loss in losses if loss.pods), key=lambda loss: -len(loss.pods))


def _today(question: SizeQuestion, found: SizeResult) -> Iterator[str]:
    """Yield a sentence that says which of the failures today's nodes do not survive.

    Yield nothing if no failure was tried on these nodes.
    """
    if not found.tried_today:
        return
    survival = question.survival
    words, losses = _survival_words(survival), _losses_today(found)
    if not losses:
        tried = f", as far as tried ({found.tried_today:,} sets)" if survival.nodes > 1 else ""
        apart = " apart from these pods" if found.pinned else ""
        yield f"Today's nodes also survive the loss of any {words}{apart}{tried}."
        return
    worst = losses[0]
    which = f"the loss of {' or '.join(sorted(loss.failed for loss in losses))}"
    if len(losses) > 2:
        which = f"{len(losses):,} of the {found.tried_today:,} failures that were tried"
    without = f"without {worst.failed}, " if len(losses) > 1 else ""
    pods = counted(len(worst.pods), "other pod" if found.pinned else "pod")
    stay = "stays" if len(worst.pods) == 1 else "stay"
    nodes = "Today's nodes"
    if _is_todays_set(question, found):
        nodes += " are the same set, but with the pods where they are now, they"
    yield (
        f"{nodes} do not survive {which}: {without}{pods} {stay} pending, of "
        f"{listed(sorted(set(worst.pods.values())), 2)}."
    )


def _is_todays_set(question: SizeQuestion, found: SizeResult) -> bool:
    """Return whether there are as many new nodes as replaced nodes of each kind."""
    counts = Counter(offer.today for offer in found.nodes.values())
    same = all(len(today) == count for today, count in counts.items())
    return same and len(found.nodes) == question.replaced


def _zoneless(survival: Survival, found: SizeResult) -> Iterator[str]:
    """Yield a sentence if `survival` includes zones, but some of the new nodes are in no zone."""
    count = sum(not offer.zone for offer in found.nodes.values())
    if survival.zones and count:
        which = "1 of the new nodes is" if count == 1 else f"{count:,} of the new nodes are"
        pool = "its pool has" if count == 1 else "their pools have"
        yield (
            f"{which} in no zone, because today {pool} none. The failure of a zone does not affect "
            "such nodes."
        )


def _control_plane(nodes: int) -> Iterator[str]:
    """Yield a sentence about the replaced control plane nodes; `nodes` is their number.

    If `nodes` is 0, yield nothing.
    """
    if nodes:
        run, them = ("runs", "it") if nodes == 1 else ("run", "them")
        yield (
            f"{nodes:,} of the nodes to replace {run} the control plane; "
            f"--keep {CONTROL_PLANE}= keeps {them}."
        )


def _virtual(nodes: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about the virtual `nodes`, if there are any."""
    if nodes:
        verb = "is kept: it has" if len(nodes) == 1 else "are kept: they have"
        yield f"{listed(nodes, 2)} {verb} no machine to replace."


def _spot(question: SizeQuestion, found: SizeResult) -> Iterator[str]:
    """Yield a sentence if the share of spot nodes is larger among the new nodes than today."""
    nodes, today = len(found.nodes), len(question.spot)
    count = sum(bool(spot_label(offer.sample.labels)) for offer in found.nodes.values())
    if today and count * question.replaced > today * nodes:
        yield (
            f"{count:,} of {counted(nodes, 'new node')} "
            f"{'is a spot node' if count == 1 else 'are spot nodes'} (today {today:,} of "
            f"{question.replaced:,}), because no rule keeps their pods off spot nodes. "
            f"--keep {question.spot[0]} keeps today's spot nodes instead."
        )


def _nodes(question: SizeQuestion, found: SizeResult) -> ResultTable:
    groups: dict[tuple[str, str, str, str], list[float]] = {}
    for one in found.nodes.values():
        groups.setdefault((one.pool, one.node_type, one.size, one.zone), []).append(one.price)
    rows = [
        {
            "nodes": len(prices),
            "type": node_type,
            "size": size,
            "zone": zone,
            "pool": pool,
            "price": round(prices[0], 4),
            "cost": round(float_sum(prices), 4),
            "each": f"{prices[0]:,.3f}" if question.is_priced else "",
            "all": f"{float_sum(prices):,.2f}" if question.is_priced else "",
        }
        for (pool, node_type, size, zone), prices in sorted(groups.items())
    ]
    columns = (
        ResultColumn("nodes", "nodes", NUMBER),
        ResultColumn("type", "type", NAME),
        *((ResultColumn("size", "size", NAME),) if any(row["size"] for row in rows) else ()),
        ResultColumn("zone", "zone", NAME),
        ResultColumn("each", "each/h", NUMBER, 2),
        ResultColumn("all", "all/h", NUMBER),
        ResultColumn("pool", "pool", NAME, 1),
    )
    return ResultTable("fleet", "the nodes", columns, rows, 12)


def _binds(found: SizeResult) -> ResultTable:
    """Return a table of the causes of the lower bound on the cost, with the share of each."""
    causes = sorted((-share, cause) for cause, share in found.bound.causes.items() if share > 0)
    rows = [
        {"resource": cause, "share": round(-share, 4), "percent": f"{-share:.0%}"}
        for share, cause in causes
    ]
    columns = (
        ResultColumn("percent", "share of the bound", NUMBER),
        ResultColumn("resource", "because of"),
    )
    return ResultTable("binds", "what determines the lower bound", columns, rows, 5)


def _obstacles(found: SizeResult) -> ResultTable:
    rows = [
        {"reason": reason, "nodes": count}
        for reason, count in sorted(found.obstacles.items(), key=lambda item: (-item[1], item[0]))
    ]
    columns = (ResultColumn("nodes", "nodes", NUMBER), ResultColumn("reason", "because"))
    return ResultTable("obstacles", "why no further node can be removed", columns, rows, 6)


def _failure_table(name: str, title: str, pods: Mapping[tuple[str, str], str]) -> ResultTable:
    rows = [
        {"pod": pod, "failure": failure, "why": why} for (pod, failure), why in sorted(pods.items())
    ]
    columns = (
        ResultColumn("pod", "pod", NAME),
        ResultColumn("failure", "failure"),
        ResultColumn("why", "why"),
    )
    return ResultTable(name, title, columns, rows, 5)


def _pods(name: str, title: str, pods: Iterable[tuple[str, str]], what: str) -> ResultTable:
    rows = [{"pod": pod, what: why} for pod, why in sorted(pods)]
    columns = (ResultColumn("pod", "pod", NAME), ResultColumn(what, what))
    return ResultTable(name, title, columns, rows, 5)
