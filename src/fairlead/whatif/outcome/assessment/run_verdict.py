"""The verdict about a single run, such as that of a scenario: findings, the most severe first.

`verdict.py` compares two runs instead. Both use the same kinds of outcomes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.whatif.outcome.assessment.verdict import (
    NAMES_MAX,
    Finding,
    OutcomeKind,
    causes,
    pending_reasons,
)
from fairlead.whatif.outcome.run_outcome import RunOutcome


def run_findings(outcome: RunOutcome) -> tuple[Finding, ...]:
    """Return what happened in the run `outcome`; the first finding is the verdict."""
    found = [
        Finding(kind, sentence) for kind, row in _TABLE if (sentence := row(outcome)) is not None
    ]
    return tuple(found)


def _loop(outcome: RunOutcome) -> str | None:
    if not outcome.recurrences:
        return None
    message = outcome.recurrences[0].message
    others = len(outcome.recurrences) - 1
    more = f"; {counted(others, 'more loop')} of displacements" if others else ""
    return f"{message[:1].upper()}{message[1:]}{more}."


def _undrained(outcome: RunOutcome) -> str | None:
    if not outcome.blocking:
        return None
    return f"A drain does not complete: {causes(outcome.blocking)}."


def _pending(outcome: RunOutcome) -> str | None:
    if not outcome.pending:
        return None
    are = counted_of(len(outcome.pending), len(outcome.pods), "pod")
    return f"{are} pending at the end: {pending_reasons(outcome.pending)}."


def _error(outcome: RunOutcome) -> str | None:
    if not outcome.errors:
        return None
    first, others = outcome.errors[0], len(outcome.errors) - 1
    more = f"; {counted(others, 'more object')} with errors" if others else ""
    return f"{first.subject}: {first.message.rstrip('.')}{more}."


def _breached(outcome: RunOutcome) -> str | None:
    if not outcome.pdb_breaches:
        return None
    budgets = list(dict.fromkeys(one.pdb for one in outcome.pdb_breaches))
    number = len(outcome.pdb_breaches)
    are = "is" if number == 1 else "are"
    times = "when it allows" if len(budgets) == 1 else "when they allow"
    return (
        f"{_budgets(budgets)} breached: {counted(number, 'pod')} {are} displaced {times} "
        "no more disruptions."
    )


def _budgets(names: Sequence[str]) -> str:
    noun, are = ("Budget", "is") if len(names) == 1 else ("Budgets", "are")
    return f"{noun} {listed(names, NAMES_MAX)} {are}"


def _displaced(outcome: RunOutcome) -> str | None:
    preempted, evicted = len(outcome.preempted), len(outcome.evicted)
    parts = [
        f"{counted(number, 'pod')} {'is' if number == 1 else 'are'} {how}"
        for number, how in ((preempted, "preempted"), (evicted, "evicted"))
        if number
    ]
    return f"{' and '.join(parts)}." if parts else None


def _gangs(outcome: RunOutcome) -> str | None:
    gangs = outcome.jobs.gangs
    if not gangs.gangs:
        return None
    started = sum(len(one.waits) for one in gangs.waits)
    starts = counted_of(started, gangs.gangs, "gang", ("starts", "start"))
    finish = "finishes" if gangs.finished == 1 else "finish"
    are = "is" if gangs.broken == 1 else "are"
    broken = f"; {gangs.broken:,} {are} broken by preemption" if gangs.broken else ""
    return f"{starts}, and {gangs.finished:,} {finish}{broken}."


def _placed(outcome: RunOutcome) -> str | None:
    if outcome.pending or not outcome.pods:
        return None
    placed, completed = len(outcome.placed), len(outcome.completed)
    if completed and not placed:
        return f"No pod is pending at the end: {counted(completed, 'pod')} completed."
    ended = f", and {completed:,} completed" if completed else ""
    return f"No pod is pending at the end: {counted(placed, 'pod')} on nodes{ended}."


_Row = Callable[[RunOutcome], str | None]
_TABLE: Final[Sequence[tuple[OutcomeKind, _Row]]] = (
    (OutcomeKind.LOOP, _loop),  # never ends
    (OutcomeKind.UNDRAINED, _undrained),  # a request that is not completed
    (OutcomeKind.PENDING, _pending),  # damage that remains at the end
    (OutcomeKind.ERROR, _error),
    (OutcomeKind.BREACHED, _breached),  # temporary damage
    (OutcomeKind.STARTED, _placed),  # the rest has no severity; the most general comes first
    (OutcomeKind.COMPLETED, _gangs),
    (OutcomeKind.DISPLACED, _displaced),
)
