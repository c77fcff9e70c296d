"""ZoneBook: what is known of every zone, and what a pass makes of it.

            some zone has a ready node                no zone has one
    ┌────────────────────────────────┐  Stop    ┌───────────────────────┐
    │ each zone at its state's rate   │ ───────▶ │ nothing is emptied    │
    └────────────────────────────────┘ ◀─────── └───────────────────────┘
                                         Resume

When every zone is dark it is more likely that this side of the network is: taints are taken off
again, and once a node is heard of, all get a new grace period. A single dark zone is emptied at
the normal rate. Zones without nodes that count are forgotten at the end of each pass. (Upstream
walks through a map and stops at the first zone that is not dark, so which of those are forgotten
is left to chance there.)

One of upstream's defects lives here (`Defects`): a zone that is forgotten has no say in what was
before, so where the only zone with a ready node goes with its nodes, the others, dark for long,
are emptied on, as if there still were one.

upstream: pkg/controller/nodelifecycle/node_lifecycle_controller.go:handleDisruption
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead.engine.nodelifecycle.config import Defects, NodeLifecycleConfig
from fairlead.engine.nodelifecycle.zone import ZoneCount, ZoneState, eviction_rate, zone_state

Rates = dict[str, float]


@dataclass(frozen=True, slots=True)
class Stop:
    """Every zone is dark now: stop `rates` (all are 0) and take the taints off all nodes."""

    rates: Rates


@dataclass(frozen=True, slots=True)
class Resume:
    """Not every zone is dark any more: go on at `rates`, with a new grace period for all nodes."""

    rates: Rates


@dataclass(frozen=True, slots=True)
class Adjust:
    """Some zones are in another state than before: go on there at `rates`."""

    rates: Rates


Verdict = Stop | Resume | Adjust


class ZoneBook:
    """Nodes by zone and the states of zones."""

    def __init__(self, config: NodeLifecycleConfig) -> None:
        """Start without nodes."""
        self._config = config
        self.states: dict[str, ZoneState] = {}
        self._members: dict[str, dict[str, None]] = {}
        self._counts: dict[str, ZoneCount] = {}
        self._placed: dict[str, tuple[str, ZoneCount]] = {}  # by node: where and as what

    # --- nodes ---------------------------------------------------------------------------------

    def place(self, name: str, zone: str, *, counts: bool, is_ready: bool) -> None:
        """A pass found the node in `zone`; `counts` unless it is excluded from disruption."""
        share = ZoneCount(int(counts), int(counts and not is_ready))
        if self._placed.get(name) == (zone, share):
            return
        self.drop(name)
        self._placed[name] = (zone, share)
        self._members.setdefault(zone, {})[name] = None
        self._count(zone, share.size, share.unready)

    def drop(self, name: str) -> None:
        """The node is gone."""
        placed = self._placed.pop(name, None)
        if placed is None:
            return
        zone, share = placed
        self._count(zone, -share.size, -share.unready)
        del self._members[zone][name]
        if not self._members[zone]:
            del self._members[zone]

    def _count(self, zone: str, size: int, unready: int) -> None:
        before = self._counts.pop(zone, ZoneCount())
        after = ZoneCount(before.size + size, before.unready + unready)
        if after.size:
            self._counts[zone] = after

    def zone_of(self, name: str) -> str | None:
        """Where the last pass found the node, None if it never did."""
        placed = self._placed.get(name)
        return None if placed is None else placed[0]

    # --- zones ---------------------------------------------------------------------------------

    @property
    def counts(self) -> dict[str, ZoneCount]:
        """The zones with nodes that count."""
        return self._counts

    def open(self, zone: str) -> bool:
        """Begin with `zone`; False when it is known."""
        if zone in self.states:
            return False
        self.states[zone] = ZoneState.INITIAL
        return True

    def unopened(self) -> list[str]:
        """Zones with nodes that were forgotten because none of them counts."""
        return sorted(zone for zone in self._members if zone not in self.states)

    def members(self, zone: str) -> list[str]:
        """The nodes in `zone`, in order of their names."""
        return sorted(self._members.get(zone, ()))

    def _forgotten(self) -> list[ZoneState]:
        """The states of zones whose last node that counted is gone, unless upstream's defect is on.

        A zone in which none ever counted is no more than begun.
        """
        if self._config.defects is Defects.UPSTREAM:
            return []
        return [
            state
            for zone, state in self.states.items()
            if zone not in self._counts and state is not ZoneState.INITIAL
        ]

    def assess(self) -> Verdict | None:
        """Exchange the states for those of the present counts; what that asks for."""
        config, counts = self._config, self._counts
        states = {zone: zone_state(counts[zone], config) for zone in sorted(counts)}
        before = {zone: self.states.get(zone, ZoneState.INITIAL) for zone in states}
        was_dark = all(
            state is ZoneState.FULL_DISRUPTION for state in (*before.values(), *self._forgotten())
        )
        self.states = states
        is_dark = all(state is ZoneState.FULL_DISRUPTION for state in states.values())
        if is_dark and was_dark:
            return None
        if is_dark:
            return Stop(dict.fromkeys(states, 0.0))
        rates = {
            zone: eviction_rate(state, counts[zone], config)
            for zone, state in states.items()
            if was_dark or state is not before[zone]
        }
        if was_dark:
            return Resume(rates)
        return Adjust(rates) if rates else None
