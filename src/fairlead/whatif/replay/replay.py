"""Replays a recorded history, and compares each placement with the scheduler's rules.

Every pod that the history places is decided on the state before the placement was recorded. Then
the recorded placement is applied, whatever was decided, so that one difference does not lead to
others. The comparison is the one of `fairlead run --shadow` (`worlds.cluster.shadow`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fairlead.api.json import Json
from fairlead.api.timestamp import format_timestamp
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.input.archive import unpacked
from fairlead.whatif.input.content import content_of, content_of_stream
from fairlead.whatif.input.document import STDIN
from fairlead.whatif.input.error import InputError
from fairlead.whatif.replay.audit_log import AuditedWrite, read_audit_log
from fairlead.whatif.replay.recorded_cluster import (
    RecordedCluster,
    initial_objects,
    manifest_of,
)
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
    counted,
)
from fairlead.whatif.run.progress import Progress
from fairlead.whatif.snapshot.snapshot import Snapshot
from fairlead.worlds.cluster.shadow import (
    PLACEMENTS,
    Shadow,
    ShadowAgreement,
    ShadowDecision,
)
from fairlead.worlds.cluster.shadow_record import ShadowRecord

PRESENT: Final = "present"
_PROGRESS_EVERY: Final = 256  # writes
_NODES_SHOWN: Final = 3

_ONLY_BEST: Final = "same"
_MEANINGS: Final = {
    _ONLY_BEST: "the only best node",
    ShadowAgreement.EQUAL: "one of several best nodes, among which the scheduler draws",
    ShadowAgreement.SAMPLED: "a feasible node with a lower score; sampling explains it",
    ShadowAgreement.LOWER: "a feasible node with a lower score",
    ShadowAgreement.INFEASIBLE: "a node on which the pod does not fit",
    ShadowAgreement.UNSCHEDULABLE: "placed, but the pod fits no node",
    ShadowAgreement.PREEMPTED: "nominated after preemption, and the pod fits no node",
    ShadowAgreement.NEEDLESS: "nominated after preemption, but the pod fits a node",
    ShadowAgreement.ERROR: "a plugin failed",
}
_AGREEING: Final = (_ONLY_BEST, ShadowAgreement.EQUAL, ShadowAgreement.SAMPLED)


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The decisions of a replay in the order of the history, and what it could not follow."""

    source: str
    decisions: Sequence[ShadowDecision]
    record: ShadowRecord
    notes: tuple[str, ...] = ()


def read_history(path: str, bytes_max: int) -> tuple[str, bytes]:
    """Return the content of the file `path`, unpacked if it is compressed, and its name.

    `-` is standard input; `bytes_max` limits the size. Raises InputError.
    """
    if path == "-":
        data = content_of_stream(STDIN, sys.stdin.buffer, bytes_max)
        found = list(unpacked(STDIN, data))
    elif Path(path).is_dir():
        raise InputError(path, "is a directory; expected a file")
    else:
        found = list(unpacked(path, content_of(Path(path), bytes_max)))
    if len(found) != 1:
        raise InputError(path, f"contains {len(found)} files; expected one")
    source, content = found[0]
    return source, bytes(content)


def replay_audit_log(
    source: str,
    data: bytes,
    snapshot: Snapshot | None,
    config: SchedulerConfig,
    progress: Progress,
) -> ReplayResult:
    """Replay the audit log `data`, called `source` in messages.

    `snapshot` is the cluster at an instant before or during the log; without it, the objects at the
    start are those that the log shows. Raises InputError.
    """
    writes = read_audit_log(source, data)
    notes: list[str] = []
    if snapshot is None:
        snapshot = _first_state(source, writes)
        notes.append("without --snapshot, only objects that the log shows are known")
    else:
        later = [one for one in writes if one.at > snapshot.taken_at]
        if writes and not later:
            taken = format_timestamp(snapshot.taken_at)
            problem = f"was taken at {taken}, after the last write of {source}"
            raise InputError(snapshot.source, problem)
        if len(later) < len(writes):
            earlier = counted(len(writes) - len(later), "write")
            notes.append(f"{earlier} before the snapshot was taken not replayed")
        writes = later
    decisions: list[ShadowDecision] = []
    record = ShadowRecord([PRESENT])
    shadow = Shadow({PRESENT: config}, decisions.append)
    cluster = RecordedCluster(source)
    shadow.handle(cluster.load(snapshot), snapshot.taken_at)
    progress.begin("replaying", len(writes))
    for number, write in enumerate(writes):
        if number % _PROGRESS_EVERY == 0:
            progress.reach(number, 0.0)
        if write.subresource == "binding" and not shadow.cluster.table.count:
            problem = "no Node is known when the first pod is bound; name a dump with --snapshot"
            raise InputError(source, problem, object_name=write.where)
        for stimulus in cluster.apply(write):
            shadow.handle(stimulus, write.at)
    for decision in decisions:
        record.record(decision)
    notes += _gaps(cluster)
    return ReplayResult(source, decisions, record, tuple(notes))


def _first_state(source: str, writes: Sequence[AuditedWrite]) -> Snapshot:
    """Return the cluster before the first of `writes`, as far as they show it."""
    found = tuple(manifest_of(source, write.where, obj) for write, obj in initial_objects(writes))
    return Snapshot(source, found, writes[0].at if writes else 0)


def _gaps(cluster: RecordedCluster) -> Iterable[str]:
    """Yield notes about what the log does not tell."""
    if unknown := len(cluster.unknown_bindings):
        first = cluster.unknown_bindings[0]
        pods = counted(unknown, "pod")
        yield f"{pods} not compared, whose creation is not recorded, such as {first}"
    if cluster.unfollowed:
        yield f"{counted(cluster.unfollowed, 'write')} of unknown objects or effect left out"


def replay_answer(result: ReplayResult) -> TabularAnswer:
    """Return the answer of `fairlead replay`."""
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
        (),
        (
            _classes(counts, placements),
            ResultTable("differences", "pods that differ", columns, differing, 20),
            ResultTable("pods", "all pods", columns, rows, 0),
        ),
        facts,
        result.notes,
    )


def _class(decision: ShadowDecision) -> str:
    is_only = decision.agreement is ShadowAgreement.EQUAL and decision.equals == 1
    return _ONLY_BEST if is_only else decision.agreement


def _verdict(placements: int, agreeing: int, counts: dict[str, int]) -> str:
    if not placements:
        return "The history places no pod that can be compared."
    share = f"{agreeing / placements:.1%}"
    same, equal = counts[_ONLY_BEST], counts[ShadowAgreement.EQUAL]
    text = f"{agreeing:,} of {counted(placements, 'placement')} agree with the rules ({share})"
    return f"{text}: {same:,} on the only best node, {equal:,} on one of several best nodes."


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


def _best(decision: ShadowDecision) -> str:
    shown = ", ".join(decision.choices[:_NODES_SHOWN])
    rest = decision.equals - min(len(decision.choices), _NODES_SHOWN)
    return f"{shown} and {rest:,} more" if rest > 0 else shown


def _reason(decision: ShadowDecision) -> str:
    if decision.reason:
        return decision.reason
    if decision.score is not None and decision.best_score is not None:
        return f"score {decision.score:,} of {decision.best_score:,}"
    return ""
