"""Replays recorded node timelines: node lifecycle, taint eviction and pod garbage collection.

Three things are compared: all writes of the controllers, the changes of zone states, and the nodes
and pods at the end. The order of the writes of one millisecond is ignored. Writes that were not in
every recorded run are optional. Zone states that are random upstream are not compared.

By default, the replay reproduces upstream's defects. `compare_node_timeline_with_defaults` compares
a replay without the defects that Fairlead corrects. If only a replay with the defects agrees with
the recording, the result is a remark and not a mismatch.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json
from fairlead.api.timestamp import NANOSECONDS_PER_MILLISECOND
from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.store import Store
from fairlead.conformance.comparison import (
    ABSENT,
    Mismatch,
    Remark,
    duration_ms,
    duration_ns,
    first_mismatch,
)
from fairlead.conformance.nodelifecycle.node_world import NodeWorld, to_ms
from fairlead.conformance.nodelifecycle.scenario import begin_scenario
from fairlead.conformance.nodelifecycle.write_log import EPOCH
from fairlead.engine.core.command import IssuedCommand
from fairlead.engine.core.controller import Controller
from fairlead.engine.core.instant import DurationNs, Instant
from fairlead.engine.core.reporter import Reporter, SilentReporter
from fairlead.engine.core.stimulus import Stimulus
from fairlead.engine.engine import Engine
from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.controller import NodeLifecycle
from fairlead.engine.nodelifecycle.eviction.taint_eviction import TaintEviction
from fairlead.engine.nodelifecycle.pod_gc import PodGarbageCollector
from fairlead.engine.nodelifecycle.zones.zone_state import KEY_SEPARATOR
from fairlead.engine.state.cluster import Cluster

# The members of a write that describe the recording, not the controllers.
_REMARKS: Final = ("unstable",)


class _ZoneStates(Struct):
    """Adds an entry to `entries` for each change of the state of a zone."""

    lifecycle: NodeLifecycle
    entries: list[Json] = field(default_factory=list)
    _before: dict[str, str] = field(default_factory=dict)

    def note(self, now: Instant) -> None:
        after = {zone: state.value for zone, state in self.lifecycle.zone_states.items()}
        for zone in sorted({*after, *self._before}):
            if after.get(zone) != self._before.get(zone):
                name = zone.replace(KEY_SEPARATOR, "::")
                self.entries.append({"t_ms": to_ms(now), "zone": name, "state": after.get(zone)})
        self._before = after


class _Observed(Struct, frozen=True):
    """Wraps `engine`. After each handled deadline, logs the zone states that have changed."""

    engine: Engine
    states: _ZoneStates

    def handle(self, stimulus: Stimulus, now: Instant) -> list[IssuedCommand]:
        return self.engine.handle(stimulus, now)

    def next_deadline(self) -> Instant | None:
        return self.engine.next_deadline()

    def handle_deadline(self, now: Instant) -> list[IssuedCommand]:
        issued = self.engine.handle_deadline(now)
        self.states.note(now)
        return issued


def decide_node_timeline(scenario: Json, defects: str = DefectPolicy.UPSTREAM) -> Json:
    """Replay `scenario`; return `{"writes": …, "zone_states": …, "final": …}`.

    `defects` is a value of DefectPolicy.
    """
    config = lifecycle_config(scenario["config"], DefectPolicy(defects))
    return replay(scenario, NodeLifecycle(config, SilentReporter(), EPOCH), config)


def replay(
    scenario: Json,
    lifecycle: NodeLifecycle,
    config: NodeLifecycleConfig,
    begin: Callable[[NodeWorld, Json], None] = begin_scenario,
    reporter: Reporter | None = None,
) -> Json:
    """Replay `scenario` with `lifecycle`; return the same members as `decide_node_timeline`.

    `config` configures the controllers other than `lifecycle`. `reporter` receives the reports of
    these controllers. If `reporter` is None, the reports are dropped. `begin(world, scenario)`
    creates the objects and schedules the script.
    """
    reporter, states = reporter or SilentReporter(), _ZoneStates(lifecycle)
    controllers: list[Controller] = [lifecycle, TaintEviction(config.profile, reporter)]
    if scenario["config"]["podgc"]:
        controllers.append(PodGarbageCollector(config, reporter, EPOCH))
    world = NodeWorld(_Observed(Engine(Cluster(), controllers), states))
    begin(world, scenario)
    world.begin()
    world.run(duration_ms(scenario))
    return {
        "writes": world.log.entries,
        "zone_states": states.entries,
        "final": _final(world.store),
    }


def lifecycle_config(form: Json, defects: DefectPolicy) -> NodeLifecycleConfig:
    """Return the controllers' configuration; `form` is the `config` of a scenario."""
    return NodeLifecycleConfig(
        node_monitor_period=_duration(form, "node_monitor_period_ms", least_ms=1),
        node_startup_grace_period=_duration(form, "node_startup_grace_ms"),
        node_monitor_grace_period=_duration(form, "node_monitor_grace_ms"),
        node_eviction_rate=form["node_eviction_rate"],
        secondary_node_eviction_rate=form["secondary_node_eviction_rate"],
        large_cluster_size_threshold=form["large_cluster_size_threshold"],
        unhealthy_zone_threshold=form["unhealthy_zone_threshold"],
        terminated_pod_gc_threshold=form["podgc_terminated_threshold"],
        pass_cost=duration_ns(form, "pass_latency_ns"),
        defects=defects,
    )


def _duration(form: Json, name: str, least_ms: int = 0) -> DurationNs:
    return duration_ms(form, name, least=least_ms) * NANOSECONDS_PER_MILLISECOND


def _final(store: Store) -> Json:
    return {
        "nodes": {node["metadata"]["name"]: _final_node(node) for node in store.list(NODE)},
        "pods": {
            f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": _final_pod(pod)
            for pod in store.list(POD)
        },
    }


def _final_node(node: Json) -> Json:
    taints = [f"{taint['key']}:{taint['effect']}" for taint in node["spec"].get("taints", ())]
    return {"taints": sorted(taints), "conditions": _statuses(node)}


def _final_pod(pod: Json) -> Json:
    return {
        "node": pod["spec"].get("nodeName", ""),
        "ready": _statuses(pod).get("Ready", ""),
        "phase": pod["status"]["phase"],
        "terminating": "deletionTimestamp" in pod["metadata"],
    }


def _statuses(obj: Json) -> dict[str, str]:
    return {one["type"]: one["status"] for one in obj["status"].get("conditions", ())}


# --- comparing ---------------------------------------------------------------------------------


def compare_node_timeline(expect: Json, found: Json) -> Mismatch | None:
    """Return the first mismatch between a recording and a replay; None if there is none."""
    theirs, sometimes = _by_stability(expect["writes"])
    ours = Counter(map(_line, found["writes"]))
    differences = [(*line, "missing") for line in theirs - ours]
    differences += [(*line, "surplus") for line in ours - theirs - sometimes]
    if differences:
        t_ms, text, what = min(differences)
        both = (json.loads(text), ABSENT) if what == "missing" else (ABSENT, json.loads(text))
        return Mismatch(f"writes at {t_ms} ms", *both)
    if expect["zone_states"] is not None:
        theirs_by_zone = _states_by_zone(expect["zone_states"])
        ours_by_zone = _states_by_zone(found["zone_states"])
        difference = first_mismatch(theirs_by_zone, ours_by_zone, "zone_states")
        if difference is not None:
            return difference
    return first_mismatch(expect["final"], found["final"], "final")


def compare_node_timeline_with_defaults(case: Json) -> Mismatch | Remark | None:
    """Compare a recording with a replay that uses Fairlead's defaults; return None if they agree.

    If they differ, compare the recording with a second replay, which has upstream's defects. Return
    a remark if the second replay agrees, otherwise its first mismatch. `case` is one line of a case
    file.
    """
    expect, scenario = case["expect"], case["scenario"]
    found = compare_node_timeline(expect, decide_node_timeline(scenario, DefectPolicy.FIXED))
    if found is None:
        return None
    kept = compare_node_timeline(expect, decide_node_timeline(scenario, DefectPolicy.UPSTREAM))
    return kept or Remark(f"depends on a corrected upstream defect: {found}")


def _by_stability(writes: list[Json]) -> tuple[Counter[Any], Counter[Any]]:
    """Return (writes that occur in all recorded runs, writes that occur only in some runs)."""
    required = [write for write in writes if not write.get("unstable")]
    allowed = [write for write in writes if write.get("unstable")]
    return Counter(map(_line, required)), Counter(map(_line, allowed))


def _line(write: Json) -> tuple[int, str]:
    """Return a write as a hashable and sortable tuple (time in ms, JSON text)."""
    kept = {name: value for name, value in write.items() if name not in _REMARKS}
    return write["t_ms"], json.dumps(kept, sort_keys=True)


def _states_by_zone(entries: list[Json]) -> dict[str, list[Json]]:
    """Return a map from each zone to its states, in recorded order.

    Entries of different zones are kept apart, because a pass may record the zones in any order.
    """
    histories: dict[str, list[Json]] = {}
    for entry in entries:
        state_at = {"t_ms": entry["t_ms"], "state": entry["state"]}
        histories.setdefault(entry["zone"], []).append(state_at)
    return histories
