"""Pod garbage collection: pods that no other controller removes."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import (
    Condition,
    DeleteObject,
    ObjectRef,
    PatchStatus,
    observed,
)
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import PodCollected
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted, ObjectsLoaded
from fairlead.engine.nodelifecycle.config import NodeLifecycleConfig
from fairlead.engine.nodelifecycle.pod_gc import PodGarbageCollector
from fairlead.engine.nodelifecycle.profile import V1_16

NODE_GONE = Condition("DisruptionTarget", "True", "DeletionByPodGC", "PodGC: node no longer exists")


class Collector:
    """The controller, run in passes; instants are seconds."""

    def __init__(self, **options):
        self.records = []
        config = NodeLifecycleConfig(gc_offset=0, **options)
        self.controller = PodGarbageCollector(config, self, 0)

    def report(self, record):
        self.records.append(record)

    def observe(self, after_s, *views):
        for view in views:
            assert self.controller.handle(ObjectChanged(view), seconds(after_s)) == []

    def gone(self, after_s, *views):
        for view in views:
            assert self.controller.handle(ObjectDeleted(view), seconds(after_s)) == []

    def passes(self, until_s):
        """Return (seconds, commands) of each pass with commands."""
        found = []
        while (due := self.controller.next_deadline()) is not None and due <= seconds(until_s):
            found.append((due / seconds(1), self.controller.handle_deadline(due)))
        return found

    def removals(self, until_s):
        """Return (seconds, pod) of each removed pod."""
        return [
            (at, command.target.name)
            for at, commands in self.passes(until_s)
            for command in commands
            if isinstance(command, DeleteObject)
        ]


def ref(name):
    return ObjectRef("Pod", "default", name, f"uid-{name}")


# --- orphans -----------------------------------------------------------------------------------


def test_a_pod_whose_node_is_missing_for_the_quarantine_is_failed_and_deleted(given):
    collector = Collector()
    collector.observe(0, given.node(), given.pod())
    collector.gone(5, given.node())
    assert [at for at, commands in collector.passes(59) if commands] == []
    ((at, commands),) = collector.passes(60)
    assert (at, commands) == (
        60,
        [
            PatchStatus(ref("p1"), {"phase": "Failed"}, (NODE_GONE,)),
            DeleteObject(ref("p1"), 0, "orphaned"),
        ],
    )
    assert collector.records == [PodCollected(ref("p1"), "n1", "orphaned", seconds(60))]


def test_the_condition_of_an_orphan_has_its_observed_generation(given):
    collector = Collector()
    collector.observe(0, given.node(), given.pod(meta={"generation": 2}))
    collector.gone(5, given.node())
    ((_, (patch, _)),) = [found for found in collector.passes(60) if found[1]]
    assert patch.conditions == (observed(NODE_GONE, 2),)


def test_a_node_that_is_created_again_in_time_keeps_its_pods(given):
    collector = Collector()
    collector.observe(0, given.node(), given.pod())
    collector.gone(5, given.node())
    collector.passes(40)
    collector.observe(45, given.node())
    assert collector.removals(500) == []


def test_a_finished_orphan_keeps_its_phase(given):
    collector = Collector()
    collector.observe(0, given.pod(phase="Succeeded"))
    ((_, commands),) = [entry for entry in collector.passes(60) if entry[1]]
    assert commands == [DeleteObject(ref("p1"), 0, "orphaned")]


def test_a_quarantine_that_ends_without_pods_is_dropped(given):
    collector = Collector()
    collector.observe(0, given.pod())
    collector.passes(30)
    collector.gone(35, given.pod())
    assert collector.removals(1_000) == []
    assert collector.controller.next_deadline() is None
    collector.observe(1_001, given.pod("p2"))
    assert collector.removals(1_059) == []
    assert collector.removals(1_060) == [(1_060, "p2")]


def test_1_16_has_no_quarantine_and_fails_no_pods(given):
    collector = Collector(profile=V1_16)
    collector.observe(5, given.pod())
    assert collector.passes(20) == [(20, [DeleteObject(ref("p1"), 0, "orphaned")])]


def test_a_load_may_list_pods_before_their_node(given):
    collector = Collector()
    collector.controller.handle(ObjectsLoaded([given.pod(), given.node()]), 0)
    assert collector.controller.next_deadline() is None


def test_loaded_pods_of_missing_nodes_are_orphans(given):
    """Pods whose nodes are part of the load are not."""
    collector = Collector()
    pods = [given.pod("p1"), given.pod("p2", node="gone"), given.pod("p3", node="")]
    collector.controller.handle(ObjectsLoaded([*pods, given.node()]), 0)
    assert {pod for _, pod in collector.removals(500)} == {"p2"}


def test_other_objects_change_nothing(given):
    collector = Collector()
    collector.observe(0, given.lease())
    collector.gone(1, given.lease())
    assert collector.controller.next_deadline() is None


# --- terminating pods --------------------------------------------------------------------------


OUT = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


def terminating(given, name="p1", **others):
    return given.pod(name, meta={"name": name, "deletionTimestamp": given.stamp(0)}, **others)


@pytest.mark.parametrize(
    ("ready", "taints", "found"),
    [
        ("Unknown", [OUT], [(20, "p1")]),
        ("True", [OUT], []),
        ("Unknown", [], []),
    ],
)
def test_terminating_pods_of_an_out_of_service_node_are_deleted(given, ready, taints, found):
    collector = Collector()
    collector.observe(
        5, given.node(ready=ready, taints=taints), terminating(given), given.pod("p2")
    )
    assert collector.removals(100) == found


def test_an_out_of_service_taint_may_be_added_later(given):
    collector = Collector()
    collector.observe(5, given.node(ready="Unknown"), terminating(given))
    assert collector.removals(100) == []
    collector.observe(101, given.node(ready="Unknown", taints=[OUT]))
    assert collector.removals(200) == [(120, "p1")]


def test_1_16_ignores_the_out_of_service_taint(given):
    collector = Collector(profile=V1_16)
    collector.observe(5, given.node(ready="Unknown", taints=[OUT]), terminating(given))
    assert collector.removals(100) == []


def test_a_terminating_pod_without_a_node_is_deleted(given):
    collector = Collector()
    collector.observe(5, terminating(given, node=""))
    assert collector.passes(20) == [
        (
            20,
            [
                PatchStatus(ref("p1"), {"phase": "Failed"}, ()),
                DeleteObject(ref("p1"), 0, "unscheduled"),
            ],
        )
    ]


def test_a_pod_with_two_reasons_is_deleted_once(given):
    collector = Collector(terminated_pod_gc_threshold=1, profile=V1_16)
    orphans = [terminating(given, f"p{i}", phase="Failed") for i in range(2)]
    collector.observe(5, *orphans)
    assert collector.removals(20) == [(20, "p0"), (20, "p1")]


# --- finished pods -----------------------------------------------------------------------------


def finished(given, name, created_s, phase="Succeeded", reason=""):
    meta = {"name": name, "creationTimestamp": given.stamp(created_s)}
    return given.pod(name, phase=phase, meta=meta, status={"phase": phase, "reason": reason})


def test_finished_pods_above_the_threshold_are_deleted_evicted_and_oldest_first(given):
    collector = Collector(terminated_pod_gc_threshold=1)
    collector.observe(
        5,
        given.node(),
        finished(given, "young", -1),
        finished(given, "b", -9),
        finished(given, "a", -9),
        finished(given, "evicted", -2, "Failed", "Evicted"),
    )
    assert collector.removals(20) == [(20, "evicted"), (20, "a"), (20, "b")]


@pytest.mark.parametrize("threshold", [0, 4])
def test_finished_pods_within_the_threshold_are_kept(given, threshold):
    collector = Collector(terminated_pod_gc_threshold=threshold)
    collector.observe(5, given.node(), *(finished(given, f"p{i}", -i) for i in range(4)))
    assert collector.controller.next_deadline() is None
