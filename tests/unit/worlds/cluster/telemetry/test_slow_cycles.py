"""Slow units of work are logged with their steps."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import Bind, DeleteObject, IssuedCommand, ObjectRef
from fairlead.engine.core.issuer import API_SERVER
from fairlead.engine.framework.user_plugin.meter import FILTERED, SCORED, Meter
from fairlead.worlds.cluster.telemetry.slow_cycles import SlowCycles

MS = 1_000_000
BOUND = IssuedCommand(Bind(ObjectRef("Pod", "shop", "web-0", "u"), "n"), API_SERVER)


OTHER = IssuedCommand(Bind(ObjectRef("Pod", "shop", "web-1", "v"), "n"), API_SERVER)


class Price:
    """A plugin whose Score takes as long as its argument specifies."""

    name = "Price"

    def __init__(self, engine):
        self.engine = engine

    def score(self, taken, pod, node):
        self.engine.now += taken
        return 0


class Working:
    """An engine whose unit of work takes `taken` ms, half of them in a plugin.

    If it schedules pods, each step takes a quarter of the time.
    """

    def __init__(self, taken, scheduled=(), issued=None):
        self._scheduled = scheduled
        self._issued = [*scheduled] or [BOUND] if issued is None else issued
        self.now = 0
        self.meter = Meter(lambda: self.now)
        self._price = self.meter.measured(Price(self))
        self._price.score(500 * MS, None, None)  # before the unit
        self._taken = taken * MS

    def handle_deadline(self, _now):
        began = self.now
        for one in self._scheduled:
            self.now += 1
            self.meter.begin_steps(one.command.pod)
            for name in (FILTERED, SCORED):
                self.now += self._taken // 4 // len(self._scheduled)
                self.meter.end_step(name)
        for _ in range(2):
            self._price.score(self._taken // 4, None, None)
        self.now = began + self._taken
        return self._issued


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


STEPS = '"Computing predicates done" 38ms, "Prioritizing done" 38ms; 76 ms Price/Score (2 calls)'


@pytest.mark.parametrize(
    ("scheduled", "unit"),
    [
        ([BOUND], '"Scheduling" namespace:shop,name:web-0 (total time: 152ms)'),
        ([BOUND, OTHER], "152 ms for pod shop/web-0, shop/web-1"),
    ],
    ids=["one pod", "a group"],
)
def test_a_scheduling_cycle_has_the_fields_and_steps_of_kube_scheduler(scheduled, unit):
    lines = []
    engine = Working(152, scheduled)
    cycles = SlowCycles(engine, engine.meter, lambda: engine.now, lines.append)
    for _ in range(2):  # the second unit does not have the steps of the first
        cycles.handle_deadline(0)
    assert lines == [f"slow cycle: {unit}: {STEPS}"] * 2


@pytest.mark.parametrize(
    "issued",
    [[], [IssuedCommand(DeleteObject(ObjectRef("Pod", "shop", "victim", "w")), API_SERVER), BOUND]],
    ids=["an attempt that fails as before", "a preemption"],
)
def test_a_scheduling_cycle_is_named_by_its_pod(issued):
    """The commands do not name it: there are none, or they are about other pods, too."""
    lines = []
    engine = Working(152, [BOUND], issued)
    SlowCycles(engine, engine.meter, lambda: engine.now, lines.append).handle_deadline(0)
    unit = '"Scheduling" namespace:shop,name:web-0 (total time: 152ms)'
    assert lines == [f"slow cycle: {unit}: {STEPS}"]
