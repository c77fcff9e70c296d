"""Compares what-if answers about several changes, snapshots or configurations side by side."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import to_seconds
from fairlead.whatif.answer import WhatIfAnswer
from fairlead.whatif.outcome.assessment.fail_on import ConditionResult
from fairlead.whatif.outcome.assessment.verdict import Finding, OutcomeKind, Severity
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.result.tabular_answer import (
    NAME,
    NUMBER,
    SECONDS,
    ResultColumn,
    ResultTable,
    Row,
    TabularAnswer,
)

_STILL_PENDING: Final = ResultColumn("still_pending", "still pending", NUMBER)
_COLUMNS: Final = (
    ResultColumn("alternative", "alternative", NAME),
    ResultColumn("pending", "pending", NUMBER),
    _STILL_PENDING,
    ResultColumn("preempted", "preempted", NUMBER, rank=1),
    ResultColumn("evicted", "evicted", NUMBER, rank=2),
    ResultColumn("gone", "gone", NUMBER, rank=3),
    ResultColumn("breaches", "breaches", NUMBER, rank=4),
    ResultColumn("recovered_s", "after", SECONDS, rank=5),
)
_NODES: Final = ResultColumn("nodes", "nodes", NUMBER, rank=6)
_COST: Final = ResultColumn("cost_per_month", "cost per month at the end", NUMBER, rank=6)
_VERDICT: Final = ResultColumn("sentence", "verdict")
_WORKLOAD_COLUMNS: Final = (
    ResultColumn("workload", "workload", NAME),
    ResultColumn("alternative", "alternative", NAME),
    ResultColumn("wanted", "wanted", NUMBER, rank=1),
    ResultColumn("lowest", "lowest ready", NUMBER),
    ResultColumn("lowest_for", "for"),
    ResultColumn("at_end", "at end", NUMBER),
    ResultColumn("what", "what happened"),
)
_UNTOUCHED: Final = "untouched"
_ABSENT: Final = "has no pods"  # for example because only another alternative creates the workload


class Alternative(Struct, frozen=True):
    """An answer, its name in the comparison, and the results of its --fail-on conditions.

    `flags` are the flags of kube-controller-manager that only this alternative has.
    """

    name: str
    answer: WhatIfAnswer
    conditions: tuple[ConditionResult, ...] = ()
    flags: tuple[str, ...] = ()

    @property
    def words(self) -> list[str]:
        """The change and the flags as command-line options."""
        return [*self.answer.change.words, *self.flags]

    @property
    def rank(self) -> tuple[float, ...]:
        """A sort key; the alternative with the best outcome comes first.

        An incomplete drain evicts fewer pods than a complete drain, so it can seem to disrupt less.
        Therefore incomplete drains come last. Pods that are pending because of the change usually
        count as harm. They do not count if the change reduces the total number of pending pods, and
        no workload loses ready pods. For example, a new node can let a rollout continue, and the
        rollout then creates pods that fit on no node. If alternatives are equally harmful, the
        alternative with the smallest `pending_at_end` comes first.
        """
        found = self.answer.difference
        recovered = found.recovered_after
        kinds = list(OutcomeKind)
        first = self._worst
        harm = len(kinds) - kinds.index(first.kind)
        return (
            not self.answer.effect.is_drain_complete,
            0 if first.severity is Severity.GOOD else harm,
            self.pending_at_end + len(found.gone),
            len(found.pdb_breaches),
            harm,
            len(found.displaced),
            float("inf") if recovered is None else recovered,
            len(self.answer.effect.waited),
        )

    @property
    def pending_at_end(self) -> int:
        """The number of pods that are pending at the end, or that were pending and are removed.

        An alternative that removes pending pods helps these pods no more than an alternative that
        changes nothing.
        """
        removed = sum(pod.is_pending for pod in self.answer.difference.removed)
        return len(self.answer.changed.pending) + removed

    @property
    def pending_without(self) -> int:
        """The number of pods that are pending at the end without the change."""
        return len(self.answer.effect.without.pending)

    @property
    def _worst(self) -> Finding:
        """The most severe finding; pending pods count only if they are a harm (see `rank`)."""
        findings = self.answer.verdict.findings
        if self.pending_at_end >= self.pending_without or self._loses_ready_pods:
            return findings[0]
        waiting = (OutcomeKind.PENDING, OutcomeKind.NEGATIVE_PRIORITY_PENDING)
        others = (one for one in findings if one.kind not in waiting)
        return next(others, Finding(OutcomeKind.STARTED, findings[0].sentence))

    @property
    def _loses_ready_pods(self) -> bool:
        """Whether a workload has fewer ready pods at the end because of the change.

        This check is necessary for changes that remove a running pod and let waiting pods start in
        its place. The number of pending pods does not show such a loss.
        """
        without = self.answer.effect.without.workloads
        for one in self.answer.effect.workloads:
            ready, other = one.readiness, without.get(one.workload)
            # Only workloads whose pods change in the run without the change are in `without`.
            kept = ready.before if other is None else other.at_end
            if ready.at_end < min(kept, ready.wanted):
                return True
        return False


def compare(alternatives: Sequence[Alternative], *, is_choice: bool) -> TabularAnswer:
    """Return the comparison of `alternatives`, in the given order.

    If `is_choice` is set, the user can choose an alternative, and the verdict names the best.
    Otherwise, the verdict states what differs. If all alternatives have the same assumption, only
    the end of the verdict states this assumption.
    """
    shared = {one.answer.verdict.assumption for one in alternatives}
    assumption = shared.pop() if len(shared) == 1 else ""
    if assumption:
        alternatives = [
            replace(one, answer=replace(one.answer, verdict=one.answer.verdict.without_assumption))
            for one in alternatives
        ]
    verdict = _best(alternatives) if is_choice else _difference(alternatives)
    rows = [_row(one) for one in alternatives]
    return TabularAnswer(
        kind="WhatIfComparison",
        source=", ".join(dict.fromkeys(one.answer.source for one in alternatives)),
        verdict=f"{verdict} {assumption}".rstrip(),
        findings=(*_failures(alternatives), *_questions(alternatives)),
        tables=(
            ResultTable("alternatives", "side by side", tuple(_columns(rows)), rows),
            ResultTable("workloads", "workloads that differ", _WORKLOAD_COLUMNS,
                      _workload_rows(alternatives), shown=24),
        ),
        notes=tuple(_notes(alternatives)),
    )  # fmt: skip


def _columns(rows: Sequence[Row]) -> Iterator[ResultColumn]:
    """Yield the columns of `rows`.

    The number of pods that are pending in both runs is included only if it is above 0 in at least
    one row. The cost is included only if at least one row has a cost. The number of nodes is
    included if the cost is included, or if the number differs between rows.
    """
    has_still_pending = any(row["still_pending"] for row in rows)
    yield from (one for one in _COLUMNS if has_still_pending or one is not _STILL_PENDING)
    has_cost = any(row["cost_per_month"] is not None for row in rows)
    if has_cost or len({row["nodes"] for row in rows}) > 1:
        yield _NODES
    if has_cost:
        yield _COST
    yield _VERDICT


def _questions(found: Sequence[Alternative]) -> Iterator[str]:
    """Yield the change that all alternatives share, or the change of each if the changes differ."""
    if len({tuple(one.words) for one in found}) == 1 and not found[0].flags:
        yield found[0].answer.title
        return
    for one in found:
        yield f"{one.name}: {' '.join(one.words)}"


def _notes(found: Sequence[Alternative]) -> Iterator[str]:
    """Yield the notes; if only some alternatives have a note, their names come before it."""
    having: dict[str, list[Alternative]] = defaultdict(list)
    for one in found:
        for note in dict.fromkeys(one.answer.changed.notes):
            having[note].append(one)
    for note, those in having.items():
        yield note if len(those) == len(found) else f"{_names(those)}: {note}"


def _failures(found: Sequence[Alternative]) -> Iterator[str]:
    """Yield a text for each --fail-on condition that holds, with the name of its alternative."""
    for one in found:
        for result in one.conditions:
            if result.holds:
                yield f"{one.name}: --fail-on {result.text}: {listed(result.evidence)}"


def _best(found: Sequence[Alternative]) -> str:
    rank = min(one.rank for one in found)
    best = [one for one in found if one.rank == rank]
    sentences = list(dict.fromkeys(_sentences(one) for one in best))
    if len(found) == 1:
        return f"The only alternative, {best[0].name}: {sentences[0]}"
    if len(best) == len(found):
        start = f"All {len(found)} alternatives"
    else:
        start = f"Of {len(found)} alternatives, {_names(best)}"
    if len(sentences) > 1:  # ranks say how much is disrupted, and not what changes
        each = " ".join(f"{one.name}: {_sentences(one)}" for one in best)
        tie = "are equally" if len(best) == len(found) else "tie as the least"
        return f"{start} {tie} disruptive. {each}"
    verb = "has" if len(best) == 1 else "have"
    which = "same" if len(best) == len(found) else "best"
    return f"{start} {verb} the {which} outcome: {sentences[0]}"


def _sentences(one: Alternative) -> str:
    """Return the verdict, and the number of pending pods if pods are pending without the change."""
    before, after = one.pending_without, len(one.answer.changed.pending)
    verdict = one.answer.verdict.first
    first = verdict.sentence
    if not before or verdict.kind is OutcomeKind.UNCHANGED:  # the verdict then has the number
        return first
    are = f"{_pods_are(after)} pending at the end"
    if after == before:
        return f"{first} {are}, as without the change."
    return f"{first} {are}; without the change, {_pods_are(before)}."


def _pods_are(count: int) -> str:
    if not count:
        return "No pod is"
    return f"{counted(count, 'pod')} {'is' if count == 1 else 'are'}"


def _names(found: Sequence[Alternative]) -> str:
    """Return the names as a text: `a`, `a and b`, or `a, b and c`."""
    *first, last = (one.name for one in found)
    return f"{', '.join(first)} and {last}" if first else last


def _difference(found: Sequence[Alternative]) -> str:
    sentences = dict.fromkeys(one.answer.verdict.first.sentence for one in found)
    names = _names(found)
    if len(sentences) == 1 and not _workload_rows(found):
        return f"{names}: the answers are the same: {next(iter(sentences))}"
    if len(sentences) == 1:
        return (
            f"{names}: the verdicts are the same, but the workloads differ: {next(iter(sentences))}"
        )
    return " ".join(f"{one.name}: {one.answer.verdict.first.sentence}" for one in found)


def _row(one: Alternative) -> dict[str, object]:
    answer, found = one.answer, one.answer.difference
    recovered, autoscaling = found.recovered_after, answer.changed.autoscaling
    per_month = None if autoscaling is None else autoscaling.cost_per_month
    return {
        "alternative": one.name,
        "changes": one.words,
        "source": answer.source,
        "scheduler": answer.scheduler_words,
        "outcome": answer.verdict.first.kind.value,
        "severity": answer.verdict.first.severity.value,
        "sentence": answer.verdict.first.sentence,
        "pending": len(found.pending),
        "still_pending": len(answer.still_pending),
        "preempted": len(found.preempted),
        "evicted": len(found.evicted),
        "moved": len(found.moved),
        "gone": len(found.gone),
        "breaches": len(found.pdb_breaches),
        "fail_on": [
            {"condition": each.text, "holds": each.holds, "evidence": list(each.evidence)}
            for each in one.conditions
        ],
        "recovered_s": None if recovered is None else round(to_seconds(recovered), 3),
        "nodes": len(answer.changed.nodes),
        "cost_per_month": None if per_month is None else round(per_month, 2),
    }


def _workload_rows(found: Sequence[Alternative]) -> list[dict[str, object]]:
    """For each workload on which the alternatives differ, return a row per alternative."""
    effects = [{one.workload: one for one in each.answer.effect.workloads} for each in found]
    order: dict[WorkloadRef, None] = {}
    for each in effects:
        order.update(dict.fromkeys(each))
    rows = []
    for ref in order:
        of_all = [each.get(ref) for each in effects]
        if len({_facts(one) for one in of_all}) > 1:
            rows += [_workload_row(ref, each, one) for each, one in zip(found, of_all, strict=True)]
    return rows


def _facts(one: WorkloadEffect | None) -> tuple[object, ...]:
    """Return the texts and numbers that the rows of `one` show; () for None."""
    if one is None:
        return ()
    ready = one.readiness
    return ready.wanted, ready.lowest, ready.lowest_for_words, ready.at_end, one.words


def _workload_row(
    ref: WorkloadRef, alternative: Alternative, one: WorkloadEffect | None
) -> dict[str, object]:
    row: dict[str, object] = {"workload": str(ref), "alternative": alternative.name}
    if one is None:
        pods = alternative.answer.changed.pods.values()
        what = _UNTOUCHED if any(pod.workload == ref for pod in pods) else _ABSENT
        numbers = dict.fromkeys(("wanted", "lowest", "lowest_for_s", "lowest_for", "at_end"))
        return {**row, **numbers, "what": what}
    ready, lasted = one.readiness, one.readiness.lowest_for
    return {
        **row,
        "wanted": ready.wanted,
        "lowest": ready.lowest,
        "lowest_for_s": None if lasted is None else round(to_seconds(lasted), 3),
        "lowest_for": ready.lowest_for_words,
        "at_end": ready.at_end,
        "what": one.words,
    }
