"""ZoneStates: node counts and disruption state of every zone, updated by each pass.

        some zone has a ready node       StopEvictions    no zone has a ready node
    ┌────────────────────────────────┐ ────────────────▶ ┌───────────────────────┐
    │ each zone at its state's rate  │                   │ evictions are stopped │
    └────────────────────────────────┘ ◀──────────────── └───────────────────────┘
                                        ResumeEvictions

If every zone is fully disrupted, the likely cause is the control plane's own network. So evictions
stop, and the NoExecute taints of all nodes are removed. When a zone has a ready node again, every
node gets a new grace period. `is_excluded` states which nodes are not counted. At the end of each
pass, zones without counted nodes are dropped. Upstream may drop only some of these zones. Upstream
visits the zones in the random order of a Go map, and stops at the first zone that has counted nodes
and was not fully disrupted before.

`DefectPolicy.UPSTREAM` reproduces an upstream defect. Each pass compares the zones before and after
the pass: if not all zones were fully disrupted before, and all are now, evictions stop. In this
comparison, upstream ignores the earlier states of the zones that the pass drops. Suppose that the
pass drops the only zone with a ready node, and all other zones were fully disrupted before. Then
the pass sees no change and does not stop evictions.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:handleDisruption,
isNodeExcludedFromDisruptionChecks; legacyIsMasterNode (until 1.20); metrics.go: zone_health,
zone_size, unhealthy_nodes_in_zone
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from fairlead.api.objects import Node
from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter, ZoneAssessed
from fairlead.engine.nodelifecycle.config import DefectPolicy, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.profile import VersionProfile
from fairlead.engine.nodelifecycle.zones.zone_state import (
    ZoneCount,
    ZoneState,
    eviction_rate,
    zone_state,
)

Rates = dict[str, float]


class StopEvictions(Struct, frozen=True):
    """All zones have become fully disrupted.

    The monitor sets the eviction rates of the zones to `rates`, which are all 0. The monitor also
    removes the NoExecute taints of all nodes.
    """

    rates: Rates


class ResumeEvictions(Struct, frozen=True):
    """All zones were fully disrupted, and now at least one of them is not.

    The monitor sets the eviction rates of the zones to `rates`, and restarts the grace periods of
    all nodes.
    """

    rates: Rates


class AdjustRates(Struct, frozen=True):
    """Some zones changed their state; `rates` are the new rates of these zones."""

    rates: Rates


RateChange = StopEvictions | ResumeEvictions | AdjustRates


class ZoneStates:
    """The nodes, node counts and disruption state of each zone."""

    def __init__(self, config: NodeLifecycleConfig) -> None:
        self._config = config
        self.states: dict[str, ZoneState] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._counts: dict[str, ZoneCount] = {}
        self._placed: dict[
            str, tuple[str, ZoneCount]
        ] = {}  # node -> (zone, the node's contribution to the zone's count)

    # --- nodes ---------------------------------------------------------------------------------

    def place(self, name: str, zone: str, *, counts: bool, is_ready: bool) -> None:
        """Record that a monitor pass found the node `name` in `zone`.

        `counts` is False if the node is excluded from the zone's counts.
        """
        contribution = ZoneCount(int(counts), int(counts and not is_ready))
        if self._placed.get(name) == (zone, contribution):
            return
        self.drop(name)
        self._placed[name] = (zone, contribution)
        self._members.setdefault(zone, {})[name] = None
        self._count(zone, contribution.size, contribution.unready)

    def drop(self, name: str) -> None:
        """Remove the deleted node `name` from the counts of its zone."""
        placed = self._placed.pop(name, None)
        if placed is None:
            return
        zone, contribution = placed
        self._count(zone, -contribution.size, -contribution.unready)
        del self._members[zone][name]
        if not self._members[zone]:
            del self._members[zone]

    def _count(self, zone: str, size: int, unready: int) -> None:
        before = self._counts.pop(zone, ZoneCount())
        after = ZoneCount(before.size + size, before.unready + unready)
        if after.size:
            self._counts[zone] = after

    def zone_of(self, name: str) -> str | None:
        """Return the zone in which the last pass found the node; None if no pass has found it."""
        placed = self._placed.get(name)
        return None if placed is None else placed[0]

    # --- zones ---------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, ZoneCount]:
        """The `ZoneCount` of each zone that has counted nodes."""
        return self._counts

    def open(self, zone: str) -> bool:
        """Give `zone` the state INITIAL if it has no state; return True if it had none."""
        if zone in self.states:
            return False
        self.states[zone] = ZoneState.INITIAL
        return True

    def untracked(self) -> list[str]:
        """Return the zones that have nodes but no disruption state.

        All nodes of these zones are excluded from `counts`.
        """
        return sorted(zone for zone in self._members if zone not in self.states)

    def members(self, zone: str) -> list[str]:
        """Return the names of the nodes in `zone`, sorted."""
        return sorted(self._members.get(zone, ()))

    def _forgotten(self) -> list[ZoneState]:
        """Return the stored states, except INITIAL, of zones that no longer have counted nodes.

        If upstream's defects are reproduced (`DefectPolicy.UPSTREAM`), the result is empty.
        """
        if self._config.defects is DefectPolicy.UPSTREAM:
            return []
        return [
            state
            for zone, state in self.states.items()
            if zone not in self._counts and state is not ZoneState.INITIAL
        ]

    def assess(self) -> RateChange | None:
        """Update the zone states from the node counts; return the change of eviction rates.

        Returns None if no rate changes.
        """
        config, counts = self._config, self._counts
        states = {zone: zone_state(counts[zone], config) for zone in sorted(counts)}
        before = {zone: self.states.get(zone, ZoneState.INITIAL) for zone in states}
        was_full = all(
            state is ZoneState.FULL_DISRUPTION for state in (*before.values(), *self._forgotten())
        )
        self.states = states
        is_full = all(state is ZoneState.FULL_DISRUPTION for state in states.values())
        if is_full and was_full:
            return None
        if is_full:
            return StopEvictions(dict.fromkeys(states, 0.0))
        rates = {
            zone: eviction_rate(state, counts[zone], config)
            for zone, state in states.items()
            if was_full or state is not before[zone]
        }
        if was_full:
            return ResumeEvictions(rates)
        return AdjustRates(rates) if rates else None


EXCLUDE_DISRUPTION: Final = "node.kubernetes.io/exclude-disruption"
# Matches node names, not labels: names ending in `master` or `master-` and three characters.
_MASTER: Final = re.compile(r".*(master|master-...)", re.DOTALL)


def is_excluded(node: Node, profile: VersionProfile) -> bool:
    """Return whether `node` is excluded from its zone's counts."""
    if profile.excludes_masters and _MASTER.fullmatch(node.metadata.name):
        return True
    return profile.excludes_labelled and EXCLUDE_DISRUPTION in node.metadata.labels


_Known = tuple[ZoneState | None, ZoneCount, float]
_GONE: _Known = (None, ZoneCount(), 0.0)


class ZoneReport:
    """Reports changes of zones to the Reporter (upstream sets gauges)."""

    def __init__(self, config: NodeLifecycleConfig, reporter: Reporter) -> None:
        self._config = config
        self._reporter = reporter
        self._reported: dict[str, _Known] = {}

    def report(self, zones: ZoneStates, now: Instant) -> None:
        """Report the zones that have changed.

        A zone with no nodes, or only excluded nodes (`is_excluded`), is reported with the state "".
        """
        is_full = all(state is ZoneState.FULL_DISRUPTION for state in zones.states.values())
        for zone in sorted({*zones.states, *self._reported}):
            known = self._known(zones, zone, is_full=is_full)
            if self._reported.get(zone, _GONE) == known:
                continue
            self._reported[zone] = known
            state, count, rate = known
            name = "" if state is None else state.value
            self._reporter.report(ZoneAssessed(zone, name, count.size, count.unready, rate, now))

    def _known(self, zones: ZoneStates, zone: str, *, is_full: bool) -> _Known:
        state = zones.states.get(zone)
        if state is None:
            return _GONE
        count = zones.counts[zone]
        rate = 0.0 if is_full else eviction_rate(state, count, self._config)
        return state, count, rate
