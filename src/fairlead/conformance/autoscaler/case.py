"""Replays cases of Cluster Autoscaler and compares Fairlead's decisions with the recorded ones.

All parts of the decisions are compared exactly, with three exceptions. The order of the actions and
events of one millisecond is ignored. Numbers that are not integers, such as utilizations, may have
a relative error of 1e-9. The groups among which the expander would choose at random are compared as
a set.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.conformance.autoscaler.instant import at_ms
from fairlead.conformance.autoscaler.loop_entry import loop_entry
from fairlead.conformance.autoscaler.world import FleetWorld
from fairlead.conformance.comparison import Mismatch, duration_ms, first_mismatch
from fairlead.engine.autoscaling.cluster_autoscaler.static_autoscaler import LoopRecord

_LOOP_MS: Final = 10_000
_PRECISION: Final = 1e-9
_POD_EVENTS: Final = ("Pod/",)


def is_autoscaler_case(case: Json) -> bool:
    """Return whether this is a case of Cluster Autoscaler: it contains node groups."""
    return "nodeGroups" in case


def decide_autoscaler(case: Json) -> Json:
    """Return Fairlead's decisions about `case`, in the form of the recorded `expect`.

    A case with `duration_ms` is a timeline, in which a loop runs every 10 s. Any other case has
    separate loops, at the times in `loops_ms`.
    """
    return _timeline(case) if "duration_ms" in case else _loops(case)


def _loops(case: Json) -> Json:
    world, loops = FleetWorld(case, live=False), []
    times = case.get("loops_ms") or [0]
    for t_ms in times:
        world.advance(t_ms)
        record, entry = _run_loop(world, single=True)
        world.advance(t_ms + record.sleep_time // NANOSECONDS_PER_MILLISECOND)
        loops.append(entry)
        _take_log(world, entry)
    return {"loops": loops}


def _take_log(world: FleetWorld, entry: Json) -> None:
    """Move the logged actions and events of `world` to `entry`, the entry of a loop.

    Of the events, only warnings and events about pods are kept.
    """
    if world.actions:
        entry["actions"] = [*world.actions]
    shown = [
        one
        for one in world.events
        if one["object"].startswith(_POD_EVENTS) or one["type"] == "Warning"
    ]
    if shown:
        entry["events"] = shown
    world.actions.clear()
    world.events.clear()


def _run_loop(world: FleetWorld, *, single: bool) -> tuple[LoopRecord, Json]:
    record = world.autoscaler.run_once(at_ms(world.now_ms))
    entry = loop_entry(world.autoscaler, record, single=single)
    world.perform()
    return record, entry


def _timeline(case: Json) -> Json:
    end_ms = duration_ms(case)
    world, loops = FleetWorld(case, live=True), []
    world.plan_script(case.get("script") or ())
    last: Json | None = None
    for t_ms in range(_LOOP_MS, end_ms, _LOOP_MS):
        world.advance(t_ms)
        _, entry = _run_loop(world, single=False)
        plain = {name: value for name, value in entry.items() if name != "t_ms"}
        if plain != last:
            loops.append(entry)
        last = plain
    world.advance(end_ms)
    pods = {key: pod["spec"].get("nodeName", "") for key, pod in world.pods.items()}
    targets = {group.id: group.target for group in world.fleet.node_groups()}
    final = {"nodes": list(world.nodes), "pods": pods, "targets": targets}
    return {"loops": loops, "actions": world.actions, "events": world.events, "final": final}


# --- comparison ------------------------------------------------------------------------------


def compare_autoscaler(expect: Json, found: Json) -> Mismatch | None:
    """Return the first mismatch between the recording and Fairlead's decisions, or None."""
    ours = _comparable(found)
    return first_mismatch(_like(_comparable(expect), ours), ours)


def _comparable(outcome: Json) -> Json:
    found = {name: value for name, value in outcome.items() if name != "varies"}
    found["loops"] = {f"{loop['t_ms']:09d}": _comparable_loop(loop) for loop in outcome["loops"]}
    for name in ("actions", "events"):
        if name in outcome:
            found[name] = _by_millisecond(outcome[name])
    return found


def _comparable_loop(loop: Json) -> Json:
    found = dict(loop)
    for name in ("actions", "events"):
        found[name] = _by_millisecond(loop.get(name) or ())
    found["expander"] = [
        {**choice, "equals": sorted(choice["equals"])} for choice in loop.get("expander") or ()
    ]
    return found


def _by_millisecond(entries: Iterable[Json]) -> dict[str, list[Json]]:
    grouped: dict[str, list[Json]] = {}
    for entry in entries:
        ordered = {name: entry[name] for name in sorted(entry)}
        grouped.setdefault(f"{entry['t_ms']:09d}", []).append(ordered)
    for found in grouped.values():
        found.sort(key=repr)
    return grouped


def _like(expected: Any, found: Any) -> Any:
    """Return `expected`, with its floats adjusted to `found`.

    A float that nearly equals the number at the same place in `found` becomes that number. So a
    comparison of the result with `found` ignores rounding errors.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return {name: _like(value, found.get(name)) for name, value in expected.items()}
    if isinstance(expected, Sequence) and not isinstance(expected, str):
        if isinstance(found, Sequence) and len(found) == len(expected):
            return [_like(a, b) for a, b in zip(expected, found, strict=True)]
        return expected
    if isinstance(expected, float) or isinstance(found, float):
        numbers = isinstance(expected, (int, float)) and isinstance(found, (int, float))
        if numbers and math.isclose(expected, found, rel_tol=_PRECISION):
            return found
    return expected
