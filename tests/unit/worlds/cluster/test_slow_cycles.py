"""Slow units of work are logged with their steps; others are not."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, Issued, ObjectRef
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.framework.user_plugin.meter import Meter, PluginTime
from fairlead.worlds.cluster.slow_cycles import SlowCycles

MS = 1_000_000
BOUND = Issued(Bind(ObjectRef("Pod", "shop", "web-0", "u"), "n"), API_SERVER)


class Working:
    """An engine whose unit of work takes `taken` ms, half of them in a plugin."""

    def __init__(self, taken):
        self.now = 0
        self.meter = Meter(lambda: self.now)
        self._slow = self.meter._times["Price", "Score"] = PluginTime("Price", "Score", 7, 9 * MS)
        self.meter._times["Idle", "Filter"] = PluginTime("Idle", "Filter", 3, 500 * MS)
        self._taken = taken * MS

    def handle_deadline(self, _now):
        self.now += self._taken
        self._slow.calls += 2
        self._slow.taken += self._taken // 2
        return [BOUND]


def logged(taken, *, measured=True):
    lines = []
    engine = Working(taken)
    meter = engine.meter if measured else None
    cycles = SlowCycles(engine, meter, lambda: engine.now, lines.append)
    assert cycles.handle_deadline(0) == [BOUND]
    return lines


@pytest.mark.parametrize(
    ("taken", "measured", "lines"),
    [
        (99, True, []),
        (100, True, ["slow cycle: 100 ms for pod shop/web-0: 50 ms Price/Score (2 calls)"]),
        (250, False, ["slow cycle: 250 ms for pod shop/web-0"]),
    ],
    ids=["quick", "slow", "without a meter"],
)
def test_only_slow_cycles_are_logged(taken, measured, lines):
    assert logged(taken, measured=measured) == lines
