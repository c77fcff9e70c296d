"""Drains that are refused, blocked or not finished."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fairlead.api.text.count import counted, counted_of
from fairlead.api.text.name_list import listed
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.words import counted_pods, listed_names, plural
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.outage import expected_duration
from fairlead.whatif.outcome.run_outcome import UNSTOPPED, RunOutcome, Undrained, UndrainedCause


def refused_sentence(effect: Effect) -> str | None:
    """Return a sentence about the nodes that kubectl drain refuses; None if there are none."""
    refused, nodes = effect.drain.refused, effect.drain.nodes
    if not refused:
        return None
    errors = " ".join(one.message for one in refused)
    missing = [one.flag for one in effect.drain.needed if f"use {one.flag} to" in errors]
    why = f"it needs {' and '.join(missing)}" if missing else refused[0].summary
    where = refused[0].node if len(nodes) == 1 else f"{len(refused):,} of {len(nodes):,} nodes"
    return f"kubectl drain refuses {where}: {why}."


def undrained_sentence(effect: Effect) -> str | None:
    """Return a sentence about a drain that never completes; None if all drains complete."""
    undrained, drains = effect.changed.blocking, effect.changed.drains
    if not undrained:
        return None
    blocking = [one.pdb for one in effect.budgets if one.blocked]
    why = (
        f" because of {plural(len(blocking), 'budget')} {listed_names(blocking)}"
        if blocking
        else ""
    )
    if not drains:
        return f"The drain does not complete: {causes(undrained, why)}."
    back = sum(one.back_at is not None for one in drains)
    blocked = {one.pod.node for one in undrained}
    waiting = sum(one.back_at is None and one.node in blocked for one in drains)
    rest = [one for one in drains if one.back_at is None and one.node not in blocked]
    away = sum(one.begun_at is not None for one in rest)
    unbegun = len(rest) - away
    more = f", {away:,} {'is' if away == 1 else 'are'} not back" if away else ""
    more += (
        f", {unbegun:,} {'waits for its' if unbegun == 1 else 'wait for their'} turn"
        if unbegun
        else ""
    )
    return (
        f"The rolling drain does not complete: {counted_of(back, len(drains), 'node')} back, "
        f"{waiting:,} {'is' if waiting == 1 else 'are'} not empty{why}{more}."
    )


def causes(undrained: Sequence[Undrained], why: str = "") -> str:
    """Return why the `undrained` pods stay; `why` is the reason for refused evictions."""
    return ", ".join(_causes(undrained, why))


def _causes(undrained: Sequence[Undrained], why: str) -> Iterator[str]:
    """Yield why the `undrained` pods stay; `why` is the reason for refused evictions."""
    for cause in UndrainedCause:
        found = [one for one in undrained if one.cause is cause]
        if not found:
            continue
        ending = "s" if len(found) == 1 else ""
        match cause:
            case UndrainedCause.REFUSED:
                what = f"cannot be evicted{why}"
            case UndrainedCause.UNSTOPPED:
                what = f"never stop{ending} ({UNSTOPPED})"
            case UndrainedCause.KEPT | UndrainedCause.PROTECTED | UndrainedCause.STOPPING:
                what = f"stay{ending}: {found[0].why}"
        nodes = counted(len({one.pod.node for one in found}), "node")
        yield f"{counted_pods(len(found))} on {nodes} {what}"


def unfinished_drain(changed: RunOutcome, end: str) -> str:
    """Return a sentence about a drain that continues after the run; "" if no drain continues.

    `end` is the text for the end of the run, for example "3m, when the simulation ends".
    """
    drains, stopping = changed.drains, _stopping(changed)
    if changed.blocking:
        return ""
    if any(one.back_at is None for one in drains):
        back = sum(one.back_at is not None for one in drains)
        expected = expected_duration(drains) if back else None
        pace = "" if expected is None else f"; at this pace, it takes {for_readers(expected)}"
        return (
            f"The rolling drain is not finished after {end}: "
            f"{counted_of(back, len(drains), 'node')} back{stopping and f', {stopping}'}{pace}."
        )
    if not stopping:
        return ""
    return f"The drain is not finished after {end}: {stopping}."


def _stopping(changed: RunOutcome) -> str:
    """Return a clause about the evicted pods that have not stopped; "" if there are none."""
    found = changed.stopping
    if not found:
        return ""
    nodes = listed(sorted({one.pod.node for one in found}), 2)
    last = max(found, key=lambda one: one.stops_at or 0)
    left = for_readers(max(0, (last.stops_at or 0) - changed.started_at))
    have, whose = ("has", "its") if len(found) == 1 else ("have", "the last")
    return (
        f"{counted_pods(len(found))} on {nodes} {have} not stopped, and {whose} grace period ends "
        f"after {left} ({last.pod.key})"
    )
