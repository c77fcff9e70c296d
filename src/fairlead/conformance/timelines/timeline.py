"""Replays recorded timelines: the scheduler over time in a scripted cluster.

All scheduling attempts are compared in order. All writes are compared, but the order of the writes
of one millisecond is ignored. Times are compared in milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.conformance.comparison import Mismatch, duration_ms, first_mismatch
from fairlead.conformance.timelines.timeline_world import (
    TimelineWorld,
    instant,
    operations,
    to_ms,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodPlaced, PodUnschedulable, Record
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.engine import Engine
from fairlead.engine.framework.diagnosis import NO_NODES
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.engine.scheduling.controller import Scheduler
from fairlead.engine.scheduling.queue.backoff import BackoffConfig
from fairlead.engine.state.cluster import Cluster

_PROFILES: Final[Mapping[str, Profile]] = {
    "default-scheduler": Profile(),
    "bin-packer": Profile(
        scheduler_name="bin-packer",
        args={"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
    ),
}
_ATTEMPT_FIELDS: Final = ("t_ms", "pod", "attempt", "profile", "result")
_SCHEDULED_FIELDS: Final = ("node",)
_FAILED_FIELDS: Final = ("plugins", "nominating", "message")


class _Attempts:
    """A reporter that lists scheduling attempts in `entries`, in the form of the recordings."""

    def __init__(self) -> None:
        self.entries: list[Json] = []

    def report(self, record: Record) -> None:
        match record:
            case PodPlaced():
                self._add(record, result="scheduled", node=record.node)
            case PodUnschedulable(is_binding=False):
                self._add(record, **_failure(record))
            case PodUnschedulable():
                same = (record.pod.key, record.attempt, to_ms(record.started))
                for entry in self.entries:
                    if (entry["pod"], entry["attempt"], entry["t_ms"]) == same:
                        entry["nominating"] = _nominating(record)
            case _:
                pass

    def _add(self, record: PodPlaced | PodUnschedulable, **fields: Any) -> None:
        self.entries.append(
            {
                "t_ms": to_ms(record.started),
                "pod": record.pod.key,
                "attempt": record.attempt,
                "profile": record.profile,
                **fields,
            }
        )


def _nominating(record: PodUnschedulable) -> str:
    named = record.nominated_node
    return "keep" if named is None else named or "clear"


def _failure(record: PodUnschedulable) -> Json:
    nominating = _nominating(record)
    if record.message == NO_NODES:
        return {"result": "no_nodes", "nominating": nominating}
    fields: Json = {"result": "unschedulable", "nominating": nominating}
    return fields | {"plugins": list(record.plugins), "message": record.message}


def decide_timeline(scenario: Json) -> Json:
    """Replay `scenario`; return `{"attempts": …, "writes": …}`."""
    attempts = _Attempts()
    cluster = Cluster()
    start = instant(scenario["config"]["start_ms"])
    config = scheduler_config(scenario["config"])
    scheduler = Scheduler(config, cluster, attempts, TieBreak(0), start)
    world = TimelineWorld(
        scenario["config"], scenario.get("terminate_ms", {}), Engine(cluster, [scheduler])
    )
    for operation in scenario["initial"]:
        world.operate(operation)
    world.begin()
    for operation in operations(scenario):
        world.at(operation["t_ms"], partial(world.operate, operation))
    world.run(duration_ms(scenario))
    return {"attempts": attempts.entries, "writes": by_instant(world.writes.entries)}


def scheduler_config(config: Json) -> SchedulerConfig:
    """Return the scheduler configuration; `config` is the `config` of a scenario."""
    gates = config.get("gates", {})
    backoff = BackoffConfig(
        initial=seconds(config.get("pod_initial_backoff_s", 1)),
        maximum=seconds(config.get("pod_max_backoff_s", 10)),
        max_in_unschedulable=seconds(config.get("max_in_unschedulable_s", 300)),
        pop_from_backoff=gates.get("SchedulerPopFromBackoffQ", True),
    )
    names = config.get("profiles", ["default-scheduler"])
    profiles = tuple(_PROFILES[name] for name in names)
    return SchedulerConfig(
        profiles, backoff, config.get("cycle_ms", 0) * NANOSECONDS_PER_MILLISECOND
    )


def by_instant(writes: Iterable[Json]) -> dict[str, list[Json]]:
    """Return the writes grouped by their `t_ms`, and sorted within each group."""
    grouped: dict[str, list[Json]] = {}
    for write in writes:
        ordered = {name: write[name] for name in sorted(write)}
        grouped.setdefault(f"{write['t_ms']:09d}", []).append(ordered)
    for entries in grouped.values():
        entries.sort(key=repr)
    return grouped


def compare_timeline(expect: Json, found: Json) -> Mismatch | None:
    """Return the first mismatch between a recorded expectation and a decision.

    `found` is the result of `decide_timeline`. Only the parts that `comparable` returns are
    compared. Returns None if there is no mismatch.
    """
    return first_mismatch(comparable(expect), found)


def comparable(expect: Json) -> Json:
    """Return the attempts and writes in `expect`, in the form that `decide_timeline` returns."""
    return {
        "attempts": [_comparable_attempt(entry) for entry in expect["attempts"]],
        "writes": by_instant(expect["writes"]),
    }


def _comparable_attempt(entry: Json) -> Json:
    fields: tuple[str, ...] = (*_ATTEMPT_FIELDS, *_SCHEDULED_FIELDS, *_FAILED_FIELDS)
    if entry["result"] == "no_nodes":
        fields = (*_ATTEMPT_FIELDS, "nominating")
    return {name: entry[name] for name in fields if name in entry}
