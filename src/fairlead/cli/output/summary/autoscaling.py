"""Prints the actions of node autoscalers and HorizontalPodAutoscalers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console

from fairlead.api.text.count import counted
from fairlead.api.text.name_list import listed
from fairlead.cli.output.console.screen import Rank, Section, rows_of
from fairlead.cli.output.console.terminal import print_item, print_line
from fairlead.cli.output.summary.waiting_time import print_waiting
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.whatif.input.duration import for_readers
from fairlead.whatif.outcome.autoscaling.node_group import (
    HOURS_PER_MONTH,
    AutoscalingOutcome,
    GroupOutcome,
    NodeTransition,
)
from fairlead.whatif.outcome.autoscaling.pod_autoscaler import PodAutoscalerOutcome
from fairlead.whatif.outcome.autoscaling.waiting_time import waiting_times_by_workload
from fairlead.whatif.outcome.run_outcome import RunOutcome

_SHOWN_MAX: Final = 10
# The reason of Cluster Autoscaler that names a pod: "BlockedByPod: REASON, NAMESPACE/NAME".
_BLOCKED_BY_POD: Final = "BlockedByPod: "
_UNSCHEDULED: Final = "Not all pods would schedule"  # Karpenter; then up to five pods and why
_POD_AND_WHY: Final = re.compile(r"\S+/\S+ => (.*?)(?= \S+/\S+ => |  and \d+ other\(s\)$| ?$)")


def autoscaling(run: RunOutcome, without_change: RunOutcome | None = None) -> tuple[Section, ...]:
    """Return the sections about the node autoscaler in `run`.

    The sections show the totals, what the autoscaler did, why pods trigger no scale-up, and why
    nodes stay. If `without_change` is given, the sections compare both runs.
    """
    outcome = run.autoscaling
    if outcome is None:
        return ()
    without = None if without_change is None else without_change.autoscaling
    # The node hours of both runs are counted until the end of the longer run.
    ends = [one.ended_at for one in (run, without_change) if one is not None]
    span, start = max(ends) - run.started_at, run.started_at

    def show_totals(console: Console, _: int) -> None:
        print_line(console, "")
        print_line(console, f"nodes by {outcome.autoscaler}: {_totals(outcome, start)}", "bold")
        print_line(console, _spent(outcome, span))
        if without is not None:
            totals = _totals(without, start)
            print_line(console, f"without the change: {totals}; {_spent(without, span)}")

    def show(console: Console, count: int) -> None:
        _print_groups(console, outcome, run, without_change, count)

    lists = outcome.groups, waiting_times_by_workload(run.waits)
    rows = max(1, *map(len, lists))
    is_urgent = bool(outcome.added or outcome.removed)
    return (
        Section("nodes by the autoscaler", 1, show_totals, Rank.PROBLEMS, is_urgent=is_urgent),
        Section("what the autoscaler did", rows, show, Rank.PROBLEMS, most=_SHOWN_MAX),
        _reasons("pods that trigger no scale-up", outcome.waiting, is_urgent=True),
        _reasons("nodes that are not removed", outcome.staying, is_urgent=False),
    )


def _print_groups(
    console: Console,
    outcome: AutoscalingOutcome,
    run: RunOutcome,
    without_change: RunOutcome | None,
    count: int,
) -> None:
    """Print what the node autoscaler did, with at most `count` entries in each list."""
    start = run.started_at
    # groups without a change come last, because the list may be cut off
    groups = sorted(outcome.groups, key=lambda one: one.added + one.removed == 0)
    for group in rows_of(groups, count):
        print_item(console, _group_line(outcome, group, start))
    if len(outcome.groups) > count + 1:
        print_item(console, f"… and {len(outcome.groups) - count:,} more groups")
    for name, machines in outcome.undelivered.items():
        noun = "machine" if machines == 1 else "machines"
        print_item(console, f"{name}: {machines:,} {noun} not delivered for lack of capacity")
    waits = None if without_change is None else without_change.waits
    print_waiting(console, run.waits, waits, count)


def pod_autoscalers(run: RunOutcome) -> Section:
    """Return the section of the HorizontalPodAutoscalers that scaled a workload in `run`.

    The section also contains the HorizontalPodAutoscalers that need more replicas than maxReplicas.
    """
    acted = [one for one in run.pod_autoscalers if one.changes or one.shortage]
    acted.sort(key=lambda one: (one.shortage is None, -len(one.changes), one.autoscaler))
    changes = sum(len(one.changes) for one in acted)
    workloads = counted(sum(1 for one in acted if one.changes), "workload")
    times = "once" if changes == 1 else f"{changes:,} times"
    scaled = f"{workloads} scaled {times}" if changes else "no workload scaled"
    title = f"replicas by HorizontalPodAutoscaler: {scaled}"

    def show(console: Console, count: int) -> None:
        print_line(console, "")
        print_line(console, title, "bold")
        for one in rows_of(acted, count):
            print_item(console, _autoscaler_line(one, run.started_at))
        if len(acted) > count + 1:
            print_item(console, f"… and {len(acted) - count:,} more workloads")

    return Section("HorizontalPodAutoscalers", len(acted), show, Rank.CAUSES, most=_SHOWN_MAX)


def _autoscaler_line(one: PodAutoscalerOutcome, start: Instant) -> str:
    limits = f"limits {one.minimum:,} and {one.maximum:,}"
    line = f"{one.autoscaler}: {one.target} "
    if one.changes:
        line += f"{one.replicas_before:,} → {one.replicas or 0:,}"
        line += f", between {one.lowest:,} and {one.highest:,} ({limits}), "
        number, last = len(one.changes), for_readers(one.changes[-1].at - start)
        line += (
            f"1 change after {last}"
            if number == 1
            else f"{number:,} changes, the last after {last}"
        )
    else:
        line += f"keeps {one.replicas or 0:,} replicas ({limits})"
    if one.shortage is None:
        return line
    end = "" if one.shortage.is_over else " until the end"
    lasted = for_readers(one.shortage.lasted)
    return f"{line}; its metrics propose up to {one.shortage.proposed:,} replicas for {lasted}{end}"


def _totals(outcome: AutoscalingOutcome, start: Instant) -> str:
    added = f"{outcome.added:,} added{_when(outcome.transitions, start, came=True)}"
    removed = f"{outcome.removed:,} removed{_when(outcome.transitions, start, came=False)}"
    line = f"{added}, {removed}, {outcome.nodes_after:,} at the end"
    cost = outcome.cost_per_hour
    if cost is not None:
        month = cost * HOURS_PER_MONTH
        line += f" for {_estimated(outcome)}{cost:,.2f} per hour ({month:,.0f} per month)"
    elif outcome.unpriced:
        unpriced = listed(outcome.unpriced)
        line += f"; the total cost is unknown, because no price is known for {unpriced}"
    return line


def _when(transitions: Sequence[NodeTransition], start: Instant, *, came: bool) -> str:
    """Return when nodes were added (`came`) or removed, as text; "" if there are no such nodes.

    The text contains the first and the last time, relative to `start`: ` after 1m00s to 2m00s`.
    """
    times = [one.at for one in transitions if one.came is came]
    if not times:
        return ""
    first, last = for_readers(times[0] - start), for_readers(times[-1] - start)
    return f" after {first if first == last else f'{first} to {last}'}"


def _spent(outcome: AutoscalingOutcome, span: DurationNs) -> str:
    line = f"{outcome.node_hours:,.1f} node hours in {for_readers(span)}"
    if outcome.cost is None:
        return line
    return f"{line}, which cost {_estimated(outcome)}{outcome.cost:,.2f}"


def _estimated(outcome: AutoscalingOutcome) -> str:
    return "an estimated " if outcome.is_cost_estimated else ""


def _group_line(outcome: AutoscalingOutcome, group: GroupOutcome, start: Instant) -> str:
    own = [one for one in outcome.transitions if one.group == group.group]
    line = f"{group.group}: {group.before:,} → {group.after:,} nodes"
    if group.maximum is not None:
        line += f" ({group.minimum:,} to {group.maximum:,})"
    for came, word in ((True, "added"), (False, "removed")):
        number = sum(one.came is came for one in own)
        if number:
            line += f", {number:,} {word}{_when(own, start, came=came)}"
            reasons = Counter(one.reason for one in own if one.came is came and one.reason)
            if reasons:
                line += f" ({', '.join(sorted(reasons))})"
    return line


def _without_pod(why: str) -> str:
    """Return the reason `why` without the name of the blocking pod.

    The name differs between nodes, so reasons are compared without it.
    """
    return why.rpartition(", ")[0] if why.startswith(_BLOCKED_BY_POD) else why


def _condensed(why: str) -> str:
    """Return Karpenter's reason `why`; if all pods in it have the same error, return one error.

    Karpenter names at most five pods, each with its error, and adds the number of further pods. The
    result leaves out this number, because nodes are grouped by their reasons.
    """
    errors = set(_POD_AND_WHY.findall(why)) if why.startswith(_UNSCHEDULED) else set[str]()
    return f"{_UNSCHEDULED}: {errors.pop()}" if len(errors) == 1 else why


def _reasons(title: str, stated: Mapping[str, str], *, is_urgent: bool) -> Section:
    """Return a section with a row for each distinct reason.

    `stated` maps each pod or node to its reason.
    """
    reasons = {name: _condensed(why) for name, why in stated.items()}
    alike: dict[str, list[str]] = {}
    for name, why in reasons.items():
        alike.setdefault(_without_pod(why), []).append(name)
    ordered = sorted(alike.items(), key=lambda entry: (-len(entry[1]), entry[0]))

    def show(console: Console, count: int) -> None:
        print_line(console, f"{title}: {len(reasons):,}")
        shown = rows_of(ordered, count)
        for _, names in shown:
            why = reasons[names[0]]
            others = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
            more = others if why != _without_pod(why) else ""
            print_item(console, f"{names[0]}{others}: {why}{more}")
        if hidden := len(ordered) - len(shown):
            print_item(console, f"… and {hidden:,} more reasons")

    name = f"{len(reasons):,} {title}"
    return Section(name, len(ordered), show, Rank.PROBLEMS, most=_SHOWN_MAX, is_urgent=is_urgent)
