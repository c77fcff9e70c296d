"""TimedEngine reports the first cycle separately, and the 99th percentile of the later ones."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.bench.batch_workloads import BATCH_WORKLOADS
from fairlead.bench.measure import TimedEngine, first_ms, measure, p99_of_later_ms
from fairlead.bench.workload import Setting, Workload
from fairlead.testing.builders import make_node, make_pod


class FakeEngine:
    """An engine that always has work, which takes no time."""

    def handle(self, stimulus, now):
        return ["handled"]

    def next_deadline(self):
        return 7

    def handle_deadline(self, now):
        return ["done", now]


def test_all_calls_reach_the_engine_and_cycles_are_measured():
    """Only handle_deadline is measured."""
    engine = TimedEngine(FakeEngine())
    assert engine.handle(None, 0) == ["handled"]
    assert engine.next_deadline() == 7
    assert engine.handle_deadline(5) == ["done", 5]
    assert len(engine.cycles_ns) == 1


def test_one_of_several_cycles_is_measured():
    """After a restart, the first cycle is measured, and then one of three."""
    engine = TimedEngine(FakeEngine())
    engine.handle_deadline(5)
    engine.restart(3)
    counts = []
    for _ in range(7):
        assert engine.handle_deadline(5) == ["done", 5]
        counts.append(len(engine.cycles_ns))
    assert counts == [1, 1, 1, 2, 2, 2, 3]


@pytest.mark.parametrize(
    ("cycles_ms", "first", "p99"),
    [
        pytest.param([], None, None, id="without cycles, no measurement"),
        pytest.param([4], 4, None, id="a single cycle is the first"),
        pytest.param([4, 1, 3, 2], 4, 3, id="of few later cycles, the longest counts"),
        pytest.param([0, *range(200)], 0, 197, id="two of two hundred are longer"),
    ],
)
def test_the_first_cycle_is_reported_separately(cycles_ms, first, p99):
    """The first cycle often builds caches for later cycles."""
    cycles_ns = [ms * 1_000_000 for ms in cycles_ms]
    assert (first_ms(cycles_ns), p99_of_later_ms(cycles_ns)) == (first, p99)


def test_only_cycles_of_measured_pods_count():
    """A cycle of an initial pod is not the first."""
    setting = Setting([make_node("n", pods=4)], [make_pod("i")], [make_pod("a")])
    found = measure(Workload("tiny", None, lambda: setting))
    assert found.first_cycle_ms is not None
    assert found.p99_cycle_ms is None


@pytest.mark.parametrize(("has_long_cycles", "is_later_measured"), [(True, True), (False, False)])
def test_each_long_cycle_is_measured(has_long_cycles, is_later_measured):
    """In the first session, the batch scheduler binds all pods. Few sessions follow."""
    workload = replace(BATCH_WORKLOADS[0], has_long_cycles=has_long_cycles)
    assert (measure(workload).p99_cycle_ms is not None) is is_later_measured
