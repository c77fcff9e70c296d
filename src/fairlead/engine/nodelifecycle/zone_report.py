"""ZoneReport: tells the reporter what changed about zones, what upstream has as gauges.

upstream: pkg/controller/nodelifecycle/metrics.go: zone_health, zone_size, unhealthy_nodes_in_zone
"""

from __future__ import annotations

from fairlead.engine.core.instant import Instant
from fairlead.engine.core.reporter import Reporter, ZoneAssessed
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.zone import ZoneCount, ZoneState, eviction_rate
from fairlead.engine.nodelifecycle.zone_book import ZoneBook

_Known = tuple[ZoneState | None, ZoneCount, float]
_GONE: _Known = (None, ZoneCount(), 0.0)


class ZoneReport:
    """Remembers what was told last."""

    def __init__(self, config: NodeLifecycleConfig, reporter: Reporter) -> None:
        """Nothing was told yet."""
        self._config = config
        self._reporter = reporter
        self._told: dict[str, _Known] = {}

    def report(self, zones: ZoneBook, now: Instant) -> None:
        """Tell what is new; a zone without nodes is told once, as without a state."""
        is_dark = all(state is ZoneState.FULL_DISRUPTION for state in zones.states.values())
        for zone in sorted({*zones.states, *self._told}):
            known = self._known(zones, zone, is_dark=is_dark)
            if self._told.get(zone, _GONE) == known:
                continue
            self._told[zone] = known
            state, count, rate = known
            name = "" if state is None else state.value
            self._reporter.report(ZoneAssessed(zone, name, count.size, count.unready, rate, now))

    def _known(self, zones: ZoneBook, zone: str, *, is_dark: bool) -> _Known:
        state = zones.states.get(zone)
        if state is None:
            return _GONE
        count = zones.counts[zone]
        rate = 0.0 if is_dark else eviction_rate(state, count, self._config)
        return state, count, rate
