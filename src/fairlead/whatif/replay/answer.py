"""The answer of a replay: the number of placements that agree, and the pods that differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.count import counted_of
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.whatif.replay.replay import PRESENT, ReplayResult
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)
from fairlead.worlds.cluster.shadow import PLACEMENTS, ShadowAgreement, ShadowDecision

_NODES_SHOWN: Final = 3

_ONLY_BEST: Final = "same"
_MEANINGS: Final = {
    _ONLY_BEST: "the only node with the highest score (best node)",
    ShadowAgreement.EQUAL: "one of several best nodes; the scheduler picks one at random",
    ShadowAgreement.SAMPLED: "a feasible node, and the best node of a possible sample",
    ShadowAgreement.LOWER: "a feasible node with a lower score",
    ShadowAgreement.INFEASIBLE: "a node on which the pod does not fit",
    ShadowAgreement.UNSCHEDULABLE: "placed, but the pod fits no node",
    ShadowAgreement.PREEMPTED: "nominated after preemption, and the pod fits no node",
    ShadowAgreement.NEEDLESS: "nominated after preemption, but the pod fits a node",
    ShadowAgreement.ERROR: "a plugin failed",
}
# The scheduler preempts and nominates in one attempt. The two writes may have to be repeated.
_NOMINATION_DELAY_MAX: Final = seconds(30)
_NOMINATED: Final = (ShadowAgreement.PREEMPTED, ShadowAgreement.NEEDLESS)
_PREEMPTION_COLUMNS: Final = (
    ResultColumn("time", "time", rank=1),
    ResultColumn("pod", "pod", NAME),
    ResultColumn("node", "node", NAME),
    ResultColumn("preemptor", "preempted by", NAME),
)
_AGREEING: Final = (_ONLY_BEST, ShadowAgreement.EQUAL, ShadowAgreement.SAMPLED)


def replay_answer(result: ReplayResult) -> TabularAnswer:
    """Return the answer of `fairlead replay` about a history with nodes, as tables."""
    counts = dict.fromkeys(_MEANINGS, 0)
    for one in result.decisions:
        counts[_class(one)] += 1
    placements = sum(counts[one] for one in (_ONLY_BEST, *PLACEMENTS))
    agreeing = sum(counts[one] for one in _AGREEING)
    summary = result.record.summary()[PRESENT]
    facts: Json = {
        "placements": placements,
        "equal_ratio": summary["equalRatio"],
        "agreement_ratio": summary["agreementRatio"],
        "average_score_lost": summary["averageScoreLost"],
    }
    rows = [_row(one) for one in result.decisions]
    differing = [row for row in rows if row["agreement"] not in (*_AGREEING, "preempted")]
    columns = _columns()
    return TabularAnswer(
        "Replay",
        result.source,
        _verdict(placements, agreeing, counts),
        tuple(_unknown_nodes(result.unknown_nodes)),
        (
            _classes(counts, placements),
            ResultTable("differences", "pods that differ", columns, differing, 20),
            ResultTable("preemptions", "preempted pods", _PREEMPTION_COLUMNS,
                        _preemption_rows(result)),
            ResultTable("pods", "all pods", columns, rows, 0),
        ),
        facts,
        result.notes,
    )  # fmt: skip


def _class(decision: ShadowDecision) -> str:
    is_only = decision.agreement is ShadowAgreement.EQUAL and decision.equals == 1
    return _ONLY_BEST if is_only else decision.agreement


def _verdict(placements: int, agreeing: int, counts: dict[str, int]) -> str:
    if not placements:
        return "The history places no pod that can be compared."
    share = f"{agreeing / placements:.1%}"
    same, equal = counts[_ONLY_BEST], counts[ShadowAgreement.EQUAL]
    agree = counted_of(agreeing, placements, "placement", ("agrees", "agree"))
    text = f"{agree} with the rules ({share})"
    ways = [f"{same:,} on the only best node", f"{equal:,} on one of several best nodes"]
    if sampled := counts[ShadowAgreement.SAMPLED]:
        ways.append(f"{sampled:,} on the best node of a possible sample")
    return f"{text}: {', '.join(ways)}."


def _unknown_nodes(nodes: Sequence[str]) -> Iterator[str]:
    """Yield a sentence about the placements on unknown `nodes`, if there are any."""
    if nodes:
        are = "placement is" if len(nodes) == 1 else "placements are"
        yield (
            f"{len(nodes):,} {are} on nodes of which the history contains no Node object at that "
            f"time, such as {nodes[0]}. They count as infeasible or unschedulable. To compare "
            "them, name a dump with these nodes: --snapshot DUMP."
        )


def _classes(counts: dict[str, int], placements: int) -> ResultTable:
    rows: list[Row] = [
        {
            "agreement": str(one),
            "pods": count,
            "share": f"{count / placements:.1%}" if one in (_ONLY_BEST, *PLACEMENTS) else "",
            "meaning": _MEANINGS[one],
        }
        for one, count in counts.items()
        if count
    ]
    columns = (
        ResultColumn("agreement", "agreement", NAME),
        ResultColumn("pods", "pods", NUMBER),
        ResultColumn("share", "share"),
        ResultColumn("meaning", "the recorded node is", rank=1),
    )
    return ResultTable("agreement", "agreement", columns, rows, len(rows))


def _columns() -> tuple[ResultColumn, ...]:
    return (
        ResultColumn("time", "time", rank=3),
        ResultColumn("pod", "pod", NAME),
        ResultColumn("node", "recorded", NAME),
        ResultColumn("agreement", "agreement", NAME),
        ResultColumn("best", "best nodes", rank=2),
        ResultColumn("reason", "because", rank=1),
    )


def _row(decision: ShadowDecision) -> Row:
    return {
        "time": format_timestamp(decision.at),
        "pod": decision.pod,
        "node": decision.node,
        "agreement": str(_class(decision)),
        "best": _best(decision),
        "choices": list(decision.choices),
        "equals": decision.equals,
        "feasible": decision.feasible,
        "score": decision.score,
        "best_score": decision.best_score,
        "reason": _reason(decision),
        "victims": list(decision.victims),
        "scheduler": decision.scheduler,
    }


def _preemption_rows(result: ReplayResult) -> list[Row]:
    """Return a row for each recorded preemption, with the pod that was nominated because of it.

    The history does not name this pod. The row names the pod whose nomination to the node was
    nearest in time, before or after the preemption. The field for this pod is "" if no pod was
    nominated to the node at about that time (_NOMINATION_DELAY_MAX).
    """
    rows: list[Row] = []
    nominated: dict[str, list[ShadowDecision]] = defaultdict(list)  # by node
    for decision in result.decisions:
        if decision.agreement in _NOMINATED:
            nominated[decision.node].append(decision)
    for one in result.preemptions:
        near = (
            decision
            for decision in nominated.get(one.node, ())
            if abs(decision.at - one.at) <= _NOMINATION_DELAY_MAX
        )
        nearest = min(near, key=lambda decision: abs(decision.at - one.at), default=None)
        rows.append(
            {
                "time": format_timestamp(one.at),
                "pod": one.pod,
                "node": one.node,
                "priority": one.priority,
                "preemptor": "" if nearest is None else nearest.pod,
            }
        )
    return rows


def _best(decision: ShadowDecision) -> str:
    shown = ", ".join(decision.choices[:_NODES_SHOWN])
    rest = decision.equals - min(len(decision.choices), _NODES_SHOWN)
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _reason(decision: ShadowDecision) -> str:
    if decision.reason:
        return decision.reason
    if decision.score is not None and decision.best_score is not None:
        return f"score {decision.score:,}, best {decision.best_score:,}"
    return ""
