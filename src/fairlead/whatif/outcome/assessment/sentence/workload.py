"""Workloads that lack ready pods, and their budgets, gangs and rollouts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.engine.core.instant import DurationNs, seconds
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.assessment.sentence.words import (
    NAMES_MAX,
    counted_pods,
    listed_names,
    plural,
)
from fairlead.whatif.outcome.budget import BudgetOutcome, BudgetResult
from fairlead.whatif.outcome.comparison.effect import Effect
from fairlead.whatif.outcome.comparison.workload_effect import WorkloadEffect, expected_rollout
from fairlead.whatif.outcome.scheduling_message import with_explanation

INCOMPLETE_MIN: Final = seconds(60)
"""From this time on, a gang with too few running members is reported; less is a slow start."""


def unavailable_sentence(effect: Effect) -> str | None:
    """Return a sentence about workloads that have no ready pod at the end or for a long time.

    Returns None if there are no such workloads.
    """
    return _without_ready_pod([one for one in effect.workloads if one.is_unavailable])


def briefly_unavailable_sentence(effect: Effect) -> str | None:
    """Return a sentence about workloads that lack a ready pod for a short time.

    Returns None if there are none.
    """
    rows = [one for one in effect.workloads if one.had_no_ready_pod and not one.is_unavailable]
    return _without_ready_pod([one for one in rows if not (one.gone or one.belongs_to_node)])


def _without_ready_pod(found: Sequence[WorkloadEffect]) -> str | None:
    """Return a sentence about the workloads in `found`; None if there are none.

    The sentence names the workloads without a ready pod at the end, if there are any, and counts
    the others: `deploy/a has no ready pod to the end, and 2 more workloads for up to 31s.`

    If there is only one workload, and it has no ready pod at the end, the sentence also gives the
    reasons why its pods do not run.
    """
    if not found:
        return None
    rows = sorted(found, key=_gap, reverse=True)
    endless = sum(one.readiness.lowest_for is None for one in rows)
    named, others = (rows[:endless], rows[endless:]) if endless else (rows, [])
    reasons = with_explanation(", ".join(rows[0].reasons)) if len(rows) == endless == 1 else ""
    why = f": {reasons}" if reasons else ""
    verb = "has" if len(named) == 1 else "have"
    rest = f", and {counted(len(others), 'more workload')} {_how_long(others)}" if others else ""
    names = listed_names([str(one.workload) for one in named])
    return f"{names} {verb} no ready pod {_how_long(named)}{rest}{why}."


def _how_long(rows: Sequence[WorkloadEffect]) -> str:
    """Return, as text, the longest time that a workload in `rows` was without a ready pod.

    `rows` are sorted by this time, the longest first.
    """
    lasted = rows[0].readiness.lowest_for
    if lasted is None:
        return "to the end"
    if len(rows) == 1:
        return f"for {rows[0].readiness.lowest_for_words}"
    return f"for up to {for_readers(lasted)}"


def _gap(one: WorkloadEffect) -> tuple[bool, DurationNs]:
    """Return a sort key: the time without a ready pod; a time that lasts to the end is longest."""
    lasted = one.readiness.lowest_for
    return lasted is None, lasted or 0


def breached_sentence(effect: Effect) -> str | None:
    """Return a sentence about breached budgets; None if there are none."""
    breached = [one for one in effect.budgets if one.state is BudgetResult.BREACHED]
    if not breached:
        return None
    pods = sum(one.breaches for one in breached)
    names = listed_names([one.pdb for one in breached])
    verb, allow = ("is", "it allows") if len(breached) == 1 else ("are", "they allow")
    displaced = f"{counted_pods(pods)} {'is' if pods == 1 else 'are'} displaced"
    return (
        f"{plural(len(breached), 'Budget')} {names} {verb} breached: {displaced} when {allow} no "
        "more disruptions."
    )


def budget_changed_sentence(effect: Effect) -> str | None:
    """Return a sentence about budgets with another rule; None if there are none."""
    budgets = [one for one in effect.budgets if one.has_new_rule]
    if not budgets:
        return None
    first = f"{budgets[0].pdb} {budgets[0].new_rule}"
    others = len(budgets) - 1
    differ = "budget differs" if others == 1 else "budgets differ"
    rest = f"; {others:,} more {differ}"
    is_quiet = effect.difference.is_empty and not effect.waited
    quiet = ", and nothing changes for any pod" if is_quiet else ""
    return f"Budget {first}{rest if others else ''}{quiet}.{_blocked_drains(budgets)}"


def _blocked_drains(budgets: Sequence[BudgetOutcome]) -> str:
    """Return a space and a sentence about those of `budgets` that never allow an eviction.

    Returns "" if there are no such budgets.
    """
    never = [one for one in budgets if one.blocks_drains]
    if not never:
        return ""
    which = "It" if len(budgets) == 1 else listed([one.pdb for one in never], NAMES_MAX)
    need = "needs all its pods" if len(never) == 1 else "need all their pods"
    return (
        f" {which} {need}, so the eviction of a ready pod is never allowed, and a drain of its "
        "node blocks."
    )


def incomplete_gang_sentence(effect: Effect) -> str | None:
    """Return a sentence about gangs of which too few members ran for a time.

    A time counts only if the change makes it longer by at least INCOMPLETE_MIN. The gangs that
    `gangs_incomplete_at_end` names are left out. Returns None if no gang remains.
    """
    found, without = effect.difference, effect.without.jobs
    known = {one.group for one in without.incomplete}
    if found.pending or found.gone:
        known.update(one.group for one in effect.changed.jobs.incomplete)
    before = without.gangs.incomplete_for
    return incomplete_gangs(
        {
            group: lasted
            for group, lasted in effect.changed.jobs.gangs.incomplete_for.items()
            if group not in known and lasted - before.get(group, 0) >= INCOMPLETE_MIN
        }
    )


def gangs_incomplete_at_end(effect: Effect) -> str:
    """Return a sentence about gangs of which too few members run at the end.

    Returns "" if there are none.
    """
    known = {group.group for group in effect.without.jobs.incomplete}
    found = [group for group in effect.changed.jobs.incomplete if group.group not in known]
    if not found:
        return ""
    names = listed_names([f"{one.title} ({one.ready} of {one.minimum} members)" for one in found])
    gangs = "Gang" if len(found) == 1 else "Gangs"
    verb = "has" if len(found) == 1 else "have"
    return f" {gangs} {names} {verb} fewer running members than the minimum."


def incomplete_gangs(lasted: Mapping[str, DurationNs]) -> str | None:
    """Return a sentence about gangs and the times for which too few of their members ran.

    Return None if there are none. The gang with the longest time comes first.
    """
    if not lasted:
        return None
    groups = sorted(lasted, key=lambda group: (-lasted[group], group))
    longest = for_readers(lasted[groups[0]])
    if len(groups) == 1:
        return f"Gang {groups[0]} runs with fewer members than its minimum for {longest}."
    names = listed_names(groups)
    return f"Gangs {names} run with fewer members than their minimum, for up to {longest}."


def stopped_rollouts(workloads: Iterable[WorkloadEffect]) -> str:
    """Return a sentence about the rollouts of `workloads` that do not finish; "" if all finish."""
    rows = [one for one in workloads if one.outdated]
    if not rows:
        return ""
    count = sum(one.outdated for one in rows)
    keep = "keeps" if count == 1 else "keep"
    does = "does" if len(rows) == 1 else "do"
    names = listed_names([str(one.workload) for one in rows])
    rollouts = plural(len(rows), "rollout")
    pods = counted_pods(count)
    return f" The {rollouts} of {names} {does} not finish: {pods} {keep} the old template."


def unfinished_rollouts(effect: Effect, after: str) -> str:
    """Return a sentence about rollouts that continue after the run; "" if there are none.

    A rollout also counts if nothing changes any more, because the rollout waits for a pod that is
    not ready. Return "" if pods are pending, because the sentence about these pods names the
    rollouts.
    """
    rows = [one for one in effect.workloads if one.outdated]
    if effect.difference.pending or not rows:
        return ""
    if effect.changed.settled:
        refused = {one.workload for one in effect.errors}
        return stopped_rollouts(one for one in rows if one.workload not in refused).strip()
    count = sum(one.outdated for one in rows)
    expected = expected_rollout(rows, seconds(effect.changed.virtual_seconds))
    takes = "the rollout takes" if len(rows) == 1 else "the rollouts take"
    pace = "" if expected is None else f" At this pace, {takes} {for_readers(expected)}."
    rollouts, names = (
        plural(len(rows), "rollout"),
        listed_names([str(one.workload) for one in rows]),
    )
    are, keep = "is" if len(rows) == 1 else "are", "keeps" if count == 1 else "keep"
    return (
        f"The {rollouts} of {names} {are} not finished after {after}, when the simulation ends "
        f"(--horizon): {counted_pods(count)} {keep} the old template.{pace}"
    )
