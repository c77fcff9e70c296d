"""Calls and time by plugin and extension point, without the time of called plugins."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fairlead.api.objects import PodStatus
from fairlead.engine.core.command import ObjectRef
from fairlead.engine.core.stimulus import ObjectChanged
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.framework.extension_point import type_of
from fairlead.engine.framework.plan.sums_cache import read_only_sums
from fairlead.engine.framework.points import ShapeKeyed
from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.framework.profile import Profile
from fairlead.engine.framework.user_plugin.meter import FILTERED, SCORED, Meter, PluginTime
from fairlead.engine.scheduling.compose import PluginHandle, build_profile
from fairlead.engine.scheduling.cycle import schedule_one
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod


class Clock:
    """A clock that plugins advance by their durations."""

    def __init__(self):
        self.now = 0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


class Filters:
    name = "Filters"
    locality = "kept"

    def __init__(self, clock):
        self.clock = clock

    def filter(self, state, pod, node):
        self.clock.now += 5
        return node

    def filter_columns(self, state, pod, table, rows):
        self.clock.now += 7
        raise RuntimeError("broken")


class Rooms:
    name = "Rooms"

    def __init__(self, clock, other):
        self.clock, self.other = clock, other

    def post_filter(self, state, pod, diagnosis):
        self.clock.now += 1
        self.other.filter(state, pod, "n")
        self.other.filter(state, pod, "n")
        self.clock.now += 2
        return "done"


def test_calls_and_time_are_summed_even_if_a_plugin_raises(clock) -> None:
    meter = Meter(clock)
    measured = meter.measured(Filters(clock))
    assert measured.filter(None, None, "n") == "n"
    with pytest.raises(RuntimeError):
        measured.filter_columns(None, None, None, None)
    assert meter.times() == [PluginTime("Filters", "Filter", 2, 12)]


def test_the_time_of_a_called_plugin_counts_for_that_plugin(clock) -> None:
    meter = Meter(clock)
    rooms = meter.measured(Rooms(clock, meter.measured(Filters(clock))))
    assert rooms.post_filter(None, None, None) == "done"
    assert meter.times() == [
        PluginTime("Filters", "Filter", 2, 10),
        PluginTime("Rooms", "PostFilter", 1, 3),
    ]


def test_a_plugin_that_was_not_called_is_not_listed(clock) -> None:
    meter = Meter(clock)
    meter.measured(Filters(clock))
    assert meter.times() == []


def test_a_measured_plugin_keeps_its_name_attributes_and_methods(clock) -> None:
    measured = Meter(clock).measured(Filters(clock))
    assert (measured.name, measured.locality) == ("Filters", "kept")
    assert not hasattr(measured, "score")


def test_plugin_times_begin_at_begin_measurement(clock):
    meter = Meter(clock)
    measured = meter.measured(Filters(clock))
    measured.filter(None, None, "n")
    meter.begin_measurement()
    assert meter.plugin_times() == []
    measured.filter(None, None, "n")
    measured.filter(None, None, "n")
    assert meter.plugin_times() == [PluginTime("Filters", "Filter", 2, 10)]
    assert meter.times() == [PluginTime("Filters", "Filter", 3, 15)]


def test_measurement_does_not_change_how_built_in_plugins_share_results():
    meter = Meter(lambda: 0)
    cluster = Cluster()
    served = build_profile(Profile(), PluginHandle(cluster, Nominator()), TieBreak(0), meter=meter)
    alone = build_profile(Profile(), PluginHandle(cluster, Nominator()), TieBreak(0))
    for measured, own in zip(served.framework.filters, alone.framework.filters, strict=True):
        assert (measured.shapes is None) == (own.shapes is None)
        assert read_only_sums(measured) == read_only_sums(own)
        assert isinstance(measured.plugin, ShapeKeyed) == isinstance(own.plugin, ShapeKeyed)
        assert type_of(measured.plugin) is type(own.plugin)
    for measured, own in zip(served.framework.scorers, alone.framework.scorers, strict=True):
        assert (measured.shapes is None) == (own.shapes is None)
        assert read_only_sums(measured) == read_only_sums(own)


@pytest.mark.parametrize("others", [0, 2])
def test_a_repeated_cycle_also_has_steps(clock, others):
    meter, cluster, tie_break = Meter(clock), Cluster(), TieBreak(0)
    for number in range(1 + others):
        cluster.apply(ObjectChanged(make_node(f"n{number}", cpu="8")))
    served = build_profile(Profile(), PluginHandle(cluster, Nominator()), tie_break, meter=meter)
    for name in ("one", "two", "three"):
        meter.take_steps()
        pod = make_pod(name)
        info = PodInfo(pod, cluster.shapes.shape_of(pod))
        is_repeated = served.placements.find(info, TieBreak(0)) is not None
        assert is_repeated == (name == "three")
        with pytest.raises(StopIteration):
            next(schedule_one(served, info, tie_break))
    assert list(meter.take_steps()) == ([FILTERED, SCORED] if others else [FILTERED])


def test_the_cycle_of_a_nominated_pod_also_has_a_step(clock):
    meter, cluster, tie_break = Meter(clock), Cluster(), TieBreak(0)
    for name in ("a", "b"):
        cluster.apply(ObjectChanged(make_node(name, cpu="8")))
    served = build_profile(Profile(), PluginHandle(cluster, Nominator()), tie_break, meter=meter)
    nominated = replace(make_pod("p"), status=PodStatus(nominated_node_name="b"))
    info = PodInfo(nominated, cluster.shapes.shape_of(nominated))
    for _ in range(2):
        meter.take_steps()
        with pytest.raises(StopIteration) as ended:
            next(schedule_one(served, info, tie_break))
        assert (ended.value.value.node.name, ended.value.value.via) == ("b", "nominated")
        assert list(meter.take_steps()) == [FILTERED]


@pytest.mark.parametrize(
    ("nodes", "cpu", "steps"),
    [
        (2, "1", [FILTERED, SCORED]),
        (1, "1", [FILTERED]),
        (2, "64", [FILTERED]),
        (0, "1", []),
    ],
    ids=["two nodes fit", "one node fits", "no node fits", "there is no node"],
)
def test_a_cycle_has_the_steps_of_upstreams_trace(clock, nodes, cpu, steps):
    meter, cluster = Meter(clock), Cluster()
    for number in range(nodes):
        cluster.apply(ObjectChanged(make_node(f"n{number}", cpu="8")))
    tie_break = TieBreak(0)
    served = build_profile(Profile(), PluginHandle(cluster, Nominator()), tie_break, meter=meter)
    pod = make_pod("web-0", requests={"cpu": cpu})
    deciding = schedule_one(served, PodInfo(pod, cluster.shapes.shape_of(pod)), tie_break)
    with pytest.raises(StopIteration):
        next(deciding)
    assert list(meter.take_steps()) == steps
    assert [one.key for one in meter.take_pods()] == (["default/web-0"] if steps else [])
    assert not meter.take_steps()


def test_the_times_of_steps_are_summed(clock):
    meter = Meter(clock)
    for _ in range(2):
        clock.now += 100
        meter.begin_steps(ObjectRef("Pod", "shop", "web-0", "u"))
        clock.now += 3
        meter.end_step(FILTERED)
        clock.now += 4
        meter.end_step(SCORED)
    assert meter.take_steps() == {FILTERED: 6, SCORED: 8}
