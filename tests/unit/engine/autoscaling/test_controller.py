"""The autoscaler as a controller: nodes come and go, and skipped loops change nothing."""

from __future__ import annotations

from functools import partial

import pytest

from fairlead.api.timestamp import parse_timestamp
from fairlead.apiserver.kind import NODE, find_kind
from fairlead.engine.autoscaling.cluster_autoscaler.cloudprovider.simulated_provider import (
    NodeGroupSpec,
)
from fairlead.engine.autoscaling.cluster_autoscaler.controller import ClusterAutoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.options import parse_options
from fairlead.engine.autoscaling.compose import ClusterAutoscalerConfig
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.reporter import SilentReporter
from fairlead.worlds.simulation.world import SimulatedWorld

START = parse_timestamp("2026-01-01T00:00:00Z")
BEFORE = "2025-12-01T00:00:00Z"


def node(name):
    room = {"cpu": "4", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": BEFORE}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": "a"}, "creationTimestamp": BEFORE},
        "status": {"capacity": room, "allocatable": room, "conditions": [ready]},
    }


def deployment(replicas):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [container]},
            },
        },
    }


def _scale(kind, size, store, now):
    store.patch(kind, "default", "web", {"spec": {"replicas": size}}, now)


class Run:
    """A cluster of two nodes with a Deployment that grows and shrinks."""

    def __init__(self, sizes, *, maximum=10, skips=True, **flags):
        spec = NodeGroupSpec(
            id="a", minimum=1, maximum=maximum, labels={"pool": "a"}, template=node("t")
        )
        config = ClusterAutoscalerConfig((spec,), parse_options(flags))
        engine = build_engine(EngineConfig(start=START, autoscaler=config), SilentReporter())
        self.world = SimulatedWorld(engine, start=START, events_max=0)
        self.controller = engine.find(ClusterAutoscaler)
        self.loops = []
        run_once = self.controller.autoscaler.run_once
        self.controller.autoscaler.run_once = lambda now: self.loops.append(now) or run_once(now)
        if not skips:
            self.controller._result = lambda _record: (object(),)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
        self.world.load([namespace, node("n1"), node("n2")])
        kind = find_kind("Deployment")
        (first, initial), *more = sizes
        web = deployment(initial)
        self.world.at(START + seconds(first), lambda store, now: store.create(web, now))
        for at, size in more:
            patch = partial(_scale, kind, size)
            self.world.at(START + seconds(at), patch)

    def until(self, end):
        self.world.run(START + seconds(end))
        return self

    @property
    def nodes(self):
        return sorted(one["metadata"]["name"] for one in self.world.store.list(NODE))

    @property
    def moves(self):
        history = self.controller.history
        return [
            (type(one).__name__, one.at, one.node)
            for one in (*history.arrivals, *history.departures)
        ]


def test_pending_pods_get_nodes_and_unneeded_nodes_go():
    run = Run([(5, 20), (1200, 3)]).until(1000)
    assert len(run.nodes) == 5
    run.until(7200)
    assert len(run.nodes) == 1
    assert run.controller.group_sizes() == {"a": 1}
    assert {kind for kind, _, _ in run.moves} == {"NodeArrival", "NodeDeparture"}


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param([(5, 20), (1200, 3)], id="up and down"),
        pytest.param([(5, 8), (700, 9), (1500, 30), (2400, 1)], id="several steps"),
        pytest.param([(5, 100)], id="beyond the limit"),
    ],
)
def test_skipped_loops_would_have_changed_nothing(sizes):
    """Running every loop gives the same moves at the same instants."""
    every, skipping = Run(sizes, skips=False).until(7200), Run(sizes).until(7200)
    assert skipping.moves == every.moves
    assert skipping.nodes == every.nodes
    assert len(every.loops) > 700
    assert len(skipping.loops) < 250


def test_changes_that_no_loop_reads_can_be_left_out_of_the_snapshot():
    """Putting them there gives the same moves and reasons at the same instants."""
    sizes = [(5, 20), (700, 9), (1500, 30), (2400, 1)]
    putting, leaving_out = Run(sizes), Run(sizes)
    autoscaler = putting.controller.autoscaler
    autoscaler.put_unread = autoscaler.put
    for end in (600, 1800, 2500, 7200):
        assert leaving_out.until(end).moves == putting.until(end).moves
        assert leaving_out.controller._last == putting.controller._last
        assert leaving_out.loops == putting.loops


def test_one_loop_runs_at_a_time_of_the_grid():
    """Even if pods come at that very time, before and after it."""
    run = Run([(10, 20), (20, 40), (1200, 3)]).until(3600)
    assert len(run.loops) == len(set(run.loops))
    assert all((at - START) % seconds(10) == 0 for at in run.loops)


def test_a_pod_that_triggers_nothing_has_a_reason():
    run = Run([(5, 100)], maximum=3).until(1200)
    assert len(run.nodes) == 3
    reasons = set(run.controller.history.without_scale_up.values())
    assert reasons == {"pod didn't trigger scale-up: 1 max node group size reached"}


def test_a_node_that_stays_has_a_reason():
    run = Run([(5, 8)]).until(1200)
    assert set(run.controller.history.staying.values()) == {"NotUnderutilized"}


def test_it_is_waiting_while_a_node_is_unneeded_for_too_short_a_time():
    run = Run([(5, 4)]).until(300)
    assert run.controller.is_waiting(run.world.now)
    run.until(3600)
    assert not run.controller.is_waiting(run.world.now)


def test_flags_change_the_delays():
    quick = Run([(5, 1)], **{"scale-down-unneeded-time": "1m"}).until(300)
    assert len(quick.nodes) == 1
    assert len(Run([(5, 1)]).until(300).nodes) == 2
