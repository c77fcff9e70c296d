"""Certainty: whether an outcome of a change occurs with every seed or depends on the seed.

A seed decides ties between nodes with equal scores, failures chosen at random, and the order of
objects that arrive at one instant. Each row is about one outcome. The row counts the seeds with
which the outcome occurs, and summarizes the numbers of pods or seconds with these seeds.

    what                          seeds    least  median  90%  most
    deploy/shop/web pending       50/50        4       4    4     4    certain
    deploy/shop/api preempted     23/50        1       2    3     3    depends on the seed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.engine.core.instant import DurationNs, to_seconds
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, Verdict
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.percentile import percentile

VERDICT: Final = "verdict"
# Not "run again": the affected pods include new pods, which did not run before.
RECOVERED: Final = "all affected run after"
MOVED: Final = "moved"
# outcome: the fields of WorkloadEffect whose sum is the number of pods. The fields cover the pods
# that the change harms, all pods that are preempted or evicted, pods that wait for a node, and pods
# that move to another node.
_COUNTS: Final[Mapping[str, tuple[str, ...]]] = {
    "preempted": ("preempted",),
    "evicted": ("evicted",),
    "pending": ("pending",),
    "gone": ("gone",),
    "not_created": ("not_created", "missing"),
    "failed": ("failed",),
    "undrained": ("undrained",),
    "down": ("down",),
    "outdated": ("outdated",),
    "waited": ("waited",),
    MOVED: ("moved",),
}


class SeedOutcome(Struct, frozen=True):
    """The outcome with one seed: the kind of verdict, numbers of pods, and the recovery time.

    `counts` maps (workload, outcome), such as (`deploy/shop/web`, `pending`), to a number of pods.

    `recovered` is the time until all affected pods ran; see `Difference.recovered_after`.
    """

    kind: OutcomeKind
    counts: Mapping[tuple[str, str], int]
    recovered: DurationNs | None


class CertaintyRow(Struct, frozen=True, kw_only=True):
    """An outcome, and in how many runs with different seeds it occurs.

    The fields `least`, `median`, `p90` and `most` summarize the numbers of pods to which it happens
    in these runs. If `what` is RECOVERED, they are times in seconds. If `subject` is VERDICT,
    `what` is a kind of verdict, and they are None.
    """

    subject: str
    what: str  # what happens to `subject`
    seeds: int  # the number of runs in which it happens
    total: int  # the number of all runs
    least: float | None = None
    median: float | None = None
    p90: float | None = None
    most: float | None = None

    @property
    def words(self) -> str:
        """The certainty of the outcome as text, such as `depends on the seed`."""
        if self.seeds < self.total:
            return "depends on the seed"
        return "certain" if self.least == self.most else "always, the amount varies"


def seed_outcome(effect: Effect, verdict: Verdict) -> SeedOutcome:
    """Return the outcome of one seed, in the form that `certainty` counts."""
    counts = {
        (str(one.workload), name): count
        for one in effect.workloads
        for name, fields in _COUNTS.items()
        if (count := sum(getattr(one, field) for field in fields))
    }
    return SeedOutcome(verdict.first.kind, counts, effect.difference.recovered_after)


def certainty(outcomes: Sequence[SeedOutcome]) -> tuple[CertaintyRow, ...]:
    """Return the rows for `outcomes`, which contains one outcome for each seed.

    The rows about verdicts come first, then the row about times, and then the rows about workloads.
    """
    return (*_verdicts(outcomes), *_times(outcomes), *_workloads(outcomes))


def _verdicts(outcomes: Sequence[SeedOutcome]) -> Iterator[CertaintyRow]:
    kinds = [one.kind for one in outcomes]
    for kind in OutcomeKind:
        if count := kinds.count(kind):
            yield CertaintyRow(subject=VERDICT, what=kind.value, seeds=count, total=len(kinds))


def _times(outcomes: Sequence[SeedOutcome]) -> Iterator[CertaintyRow]:
    times = [to_seconds(one.recovered) for one in outcomes if one.recovered]
    if times:
        yield _row("pods", RECOVERED, times, len(outcomes))


def _workloads(outcomes: Sequence[SeedOutcome]) -> list[CertaintyRow]:
    keys = sorted({key for one in outcomes for key in one.counts})
    rows = [
        _row(subject, what, [one.counts[subject, what] for one in outcomes
                             if (subject, what) in one.counts], len(outcomes))
        for subject, what in keys
    ]  # fmt: skip
    # Most moves are harmless and frequent, so they must not displace other rows of a short table.
    return sorted(
        rows, key=lambda row: (row.what == MOVED, -(row.most or 0), row.subject, row.what)
    )


def _row(subject: str, what: str, amounts: Sequence[float], total: int) -> CertaintyRow:
    ordered = sorted(amounts)
    return CertaintyRow(
        subject=subject,
        what=what.replace("_", " "),
        seeds=len(ordered),
        total=total,
        least=ordered[0],
        median=percentile(ordered, 50),
        p90=percentile(ordered, 90),
        most=ordered[-1],
    )


def order_matters(first: SeedOutcome, other: SeedOutcome) -> str:
    """Return how the counts in `other` differ from the counts in `first`; "" if all are equal.

    `other` is the outcome of a run in which objects arrive in another order. Moved pods are not
    compared: the order often decides which pods move, and this does no harm.
    """
    parts = []
    for what in _COUNTS:
        if what == MOVED:
            continue
        before, after = _total(first, what), _total(other, what)
        if before != after or _by_workload(first, what) != _by_workload(other, what):
            pods = "pod" if after == 1 else "pods"
            if before != after:
                verb = _verb(what, after)
                parts.append(f"{after:,} {pods} {verb} instead of {before:,}")
            else:
                others = "another pod" if after == 1 else "pods of other workloads"
                parts.append(f"{others} {_verb(what, after)}")
    return ", ".join(parts)


def _verb(what: str, pods: int) -> str:
    """Return the predicate for `pods` pods to which `what` happens, such as `are pending`."""
    if what == "waited":
        return "waits for a node" if pods == 1 else "wait for a node"
    if what == "failed":
        return "has failed" if pods == 1 else "have failed"
    return f"{'is' if pods == 1 else 'are'} {what.replace('_', ' ')}"


def _total(outcome: SeedOutcome, what: str) -> int:
    return sum(_by_workload(outcome, what).values())


def _by_workload(outcome: SeedOutcome, what: str) -> dict[str, int]:
    return {subject: n for (subject, name), n in outcome.counts.items() if name == what}
