"""The report's section on a node autoscaler: nodes and cost over time, waiting times, reasons."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Final, Required, TypedDict

from fairlead.api.json import Json
from fairlead.engine.core.float_sum import float_sum
from fairlead.engine.core.instant import Instant, to_seconds
from fairlead.whatif.outcome.autoscaling.node_group import AutoscalingOutcome
from fairlead.whatif.outcome.run_outcome import RunOutcome
from fairlead.whatif.result.autoscaling_json import (
    autoscaling_json,
    waiting_totals_json,
    waits_by_workload_json,
)

LINES_MAX: Final = 7
"""The number of colours in the charts' palette; smaller groups are added up in the last line."""
_OTHERS: Final = "others"
_SECONDS_PER_HOUR: Final = 3600.0
_LISTS: Final = ("groups", "nodes", "no_scale_up", "no_scale_down", "insufficient_capacity")


class NodeLine(TypedDict):
    """The number of nodes of a group or an instance type at each `AutoscalingSection.t_s`."""

    name: str
    nodes: Sequence[int]


class AutoscalingSection(TypedDict, total=False):
    """The effects of a node autoscaler.

    Lists over time have one value for each time in `t_s`. A number of nodes or a cost per hour is
    valid from its time until the next time in `t_s`. The fields `nodes_without`, `cost_without` and
    `spent_without` describe the run without the change, and are None if there is no such run. The
    fields from `waiting` on are as in the JSON of the result (docs/json.md).
    """

    autoscaler: Required[str]
    figures: Json
    figures_without: Json | None
    t_s: Sequence[float]
    # The nodes of each group; the line with the largest peak comes first.
    by_group: Sequence[NodeLine]
    by_type: Sequence[NodeLine]  # the nodes of each instance type, in the same order
    nodes_without: Sequence[int] | None
    cost: Sequence[float] | None  # per hour; None if a price is unknown
    cost_without: Sequence[float] | None
    spent: Sequence[float] | None  # the sum since the start; None if a price is unknown
    spent_without: Sequence[float] | None
    waiting: Sequence[Json]
    groups: Sequence[Json]
    nodes: Sequence[Json]
    no_scale_up: Sequence[Json]
    no_scale_down: Sequence[Json]
    insufficient_capacity: Sequence[Json]


def autoscaling_section(
    outcome: RunOutcome, without: RunOutcome | None = None
) -> AutoscalingSection | None:
    """Return the section on the autoscaler of `outcome`; None if no autoscaler acted."""
    found = outcome.autoscaling
    if found is None:
        return None
    before = None if without is None else without.autoscaling
    runs = [found] if before is None else [found, before]
    end = outcome.ended_at if without is None else max(outcome.ended_at, without.ended_at)
    moves = {one.at for run in runs for one in run.transitions}
    instants = sorted({outcome.started_at, end, *moves})
    result = autoscaling_json(found, outcome.started_at, before)["autoscaling"]
    section: AutoscalingSection = {
        "autoscaler": found.autoscaler,
        "figures": {
            **{name: value for name, value in result.items() if name not in (*_LISTS, "without")},
            **waiting_totals_json(outcome.waits),
            "most": max(_nodes(found, instants)),
        },
        "figures_without": None
        if without is None or before is None
        else {
            **result["without"],
            **waiting_totals_json(without.waits),
            "most": max(_nodes(before, instants)),
        },
        "t_s": [round(to_seconds(at - outcome.started_at), 3) for at in instants],
        "by_group": _lines({one.group: one.group for one in found.groups}, found, instants),
        "by_type": _lines({one.group: one.instance_type for one in found.groups}, found, instants),
        "nodes_without": None if before is None else _nodes(before, instants),
        "cost": _cost(found, instants),
        "cost_without": None if before is None else _cost(before, instants),
        "spent": _spent(_cost(found, instants), instants),
        "spent_without": None if before is None else _spent(_cost(before, instants), instants),
        "waiting": waits_by_workload_json(outcome.waits),
        "groups": result["groups"],
        "nodes": result["nodes"],
        "no_scale_up": result["no_scale_up"],
        "no_scale_down": result["no_scale_down"],
        "insufficient_capacity": result["insufficient_capacity"],
    }
    return section


def _counts(outcome: AutoscalingOutcome, instants: Sequence[Instant]) -> dict[str, list[int]]:
    """Return the number of nodes of each group at each of `instants`."""
    changes: dict[str, list[tuple[Instant, int]]] = {one.group: [] for one in outcome.groups}
    nodes = {one.group: one.before for one in outcome.groups}
    for move in outcome.transitions:
        if move.group in nodes:
            nodes[move.group] += 1 if move.came else -1
            changes[move.group].append((move.at, nodes[move.group]))
    found: dict[str, list[int]] = {}
    for group in outcome.groups:
        times = [at for at, _ in changes[group.group]]
        values = [group.before, *(count for _, count in changes[group.group])]
        found[group.group] = [values[bisect_right(times, at)] for at in instants]
    return found


def _nodes(outcome: AutoscalingOutcome, instants: Sequence[Instant]) -> list[int]:
    return _sum(_counts(outcome, instants).values(), len(instants))


def _sum(lines: Iterable[Sequence[int]], length: int) -> list[int]:
    found = [0] * length
    for line in lines:
        found = [total + value for total, value in zip(found, line, strict=True)]
    return found


def _lines(
    names: Mapping[str, str], outcome: AutoscalingOutcome, instants: Sequence[Instant]
) -> list[NodeLine]:
    """Return a line for each distinct value of `names`, largest peak first.

    `names` maps each group to the name of its line. If there are more than LINES_MAX lines, the
    smallest are summed into one line. Return [] if a name is empty (an unknown instance type).
    """
    if not all(names.values()):
        return []
    members: dict[str, list[Sequence[int]]] = {}
    for group, counts in _counts(outcome, instants).items():
        members.setdefault(names[group], []).append(counts)
    lines = [(name, _sum(parts, len(instants))) for name, parts in members.items()]
    shown = sorted((line for line in lines if any(line[1])), key=lambda one: (-max(one[1]), one[0]))
    if len(shown) > LINES_MAX:
        rest = _sum((counts for _, counts in shown[LINES_MAX - 1 :]), len(instants))
        shown = [*shown[: LINES_MAX - 1], (_OTHERS, rest)]
    return [{"name": name, "nodes": counts} for name, counts in shown]


def _cost(outcome: AutoscalingOutcome, instants: Sequence[Instant]) -> list[float] | None:
    """Return the hourly cost of all nodes at each of `instants`; None if a price is unknown."""
    counts = _counts(outcome, instants)
    if any(not one.has_price and any(counts[one.group]) for one in outcome.groups):
        return None
    at_end = float_sum(one.cost_per_hour or 0.0 for one in outcome.groups)
    changes = [(one.price or 0.0) * (1 if one.came else -1) for one in outcome.transitions]
    costs = list(accumulate(changes, initial=at_end - float_sum(changes)))
    times = [one.at for one in outcome.transitions]
    # Adding 0.0 turns -0.0 into 0.0.
    return [round(costs[bisect_right(times, at)], 4) + 0.0 for at in instants]


def _spent(cost: Sequence[float] | None, instants: Sequence[Instant]) -> list[float] | None:
    """Return the total cost from the first of `instants` up to each instant.

    `cost` contains the hourly cost at each instant. Return None if `cost` is None.
    """
    if cost is None:
        return None
    found = [0.0]
    for at in range(1, len(instants)):
        hours = to_seconds(instants[at] - instants[at - 1]) / _SECONDS_PER_HOUR
        found.append(found[-1] + cost[at - 1] * hours)
    return [round(one, 4) for one in found]
