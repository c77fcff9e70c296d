"""BareWorld contains only the engine, and every command gets an outcome."""

from __future__ import annotations

import pytest

from fairlead.bench.bare_world import BareWorld
from fairlead.bench.measure import measure
from fairlead.bench.measurement import IncompleteRunError
from fairlead.bench.workload import Setting, Workload
from fairlead.bench.workloads import WORKLOADS
from fairlead.engine.compose import build_scheduler_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.command import CreateObject, IssuedCommand
from fairlead.engine.core.issuer import SCHEDULER
from fairlead.engine.core.reporter import SilentReporter
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.testing.builders import make_node, make_pod


@pytest.fixture
def engine():
    return build_scheduler_engine(EngineConfig(), SilentReporter())


@pytest.fixture
def world(engine):
    return BareWorld(engine)


def where(engine):
    """Return {pod: node} of all assumed and bound pods."""
    return {info.key: info.pod.spec.node_name for info in engine.cluster.pods.values()}


def test_pods_are_bound(engine, world):
    """Pods are bound while nodes have room; the others stay pending, and time does not advance."""
    world.enqueue([ObjectsLoaded([make_node("n", pods=3)])])
    world.enqueue(ObjectChanged(make_pod(f"p{i}")) for i in range(5))
    assert world.run() == 5
    assert world.bound == 3
    assert sorted(where(engine).values()) == ["", "", "n", "n", "n"]
    engine.cluster.table.validate()


def test_a_preemptor_is_bound_after_its_victims_are_deleted(engine, world):
    """Victims are marked and deleted; the preemptor is nominated and bound."""
    world.enqueue([ObjectsLoaded([make_node("n")])])
    world.enqueue([ObjectChanged(make_pod("v", node="n", requests={"cpu": "4"}))])
    world.enqueue([ObjectChanged(make_pod("p", priority=9, requests={"cpu": "4"}))])
    world.run()
    assert (where(engine), world.bound) == ({"default/p": "n"}, 1)


def test_a_deleted_pod_makes_room(engine, world):
    """The deletion is delivered as by an informer."""
    world.enqueue([ObjectsLoaded([make_node("n", pods=1)])])
    world.enqueue([ObjectChanged(make_pod("a")), ObjectChanged(make_pod("b"))])
    world.run()
    world.enqueue([ObjectDeleted(make_pod("a"))])
    world.run()
    assert where(engine) == {"default/b": "n"}


def test_a_number_of_cycles_can_be_run(world):
    """A workload may change the cluster after a number of cycles."""
    world.enqueue([ObjectsLoaded([make_node("n")])])
    world.enqueue(ObjectChanged(make_pod(f"p{i}")) for i in range(5))
    assert (world.run(2), world.bound) == (2, 2)
    assert (world.run(), world.bound) == (3, 5)


def test_a_command_that_no_scheduler_issues_is_refused(world):
    """Such a command is not ignored."""
    with pytest.raises(NotImplementedError):
        world.perform(IssuedCommand(CreateObject({}), SCHEDULER), 0)


def workload(measured, disturb=None):
    setting = Setting([make_node("n", pods=4)], [make_pod("i")], measured, disturb)
    return Workload("tiny", 10.0, lambda: setting, 0.1 if disturb else None)


def test_a_workload_is_measured():
    """Only measured pods count; the result is pods per second."""
    found = measure(workload([make_pod("a"), make_pod("b")]))
    assert (found.workload, found.upstream_threshold) == ("tiny", 10.0)
    assert found.pods_per_second == pytest.approx(2 / found.seconds)
    assert found.peak_mib > 1


def test_a_workload_with_unbound_pods_is_not_measured():
    """The error states how many pods are unbound."""
    with pytest.raises(IncompleteRunError, match="tiny: 2 pods were not bound"):
        measure(workload([make_pod(name) for name in "abcde"]))


def test_a_workload_is_disturbed_at_the_interval_of_upstream():
    """At ten pods per second, an interval of a tenth of a second means one change per pod."""
    seen = []

    def disturb(number):
        seen.append(number)
        return [ObjectChanged(make_node("n", pods=4, labels={"n": str(number)}))]

    measure(workload([make_pod("a"), make_pod("b"), make_pod("c")], disturb))
    assert seen == [0, 1, 2]


def test_every_workload_has_its_name_and_can_be_built():
    """The names are upstream's; the test builds the cheapest workload."""
    assert all(workload.name == name for name, workload in WORKLOADS.items())
    assert {"SchedulingBasic/5000Nodes_10000Pods"} <= set(WORKLOADS)
    setting = WORKLOADS["SchedulingBasic/5000Nodes_10000Pods"].build()
    assert len(setting.measured) == 10_000
