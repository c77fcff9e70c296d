"""Schedulers and taint eviction lead to the same commands in a cluster as in the simulation."""

from __future__ import annotations

import pytest
from tests.worlds.conftest import Simulated

from fairlead.apiserver.kind import NODE, POD
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.compose import build_running_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter

CONTROLLERS = ("scheduler", "taint-eviction")


def node(name, cpu="2"):
    room = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    ready = {"type": "Ready", "status": "True"}
    meta = {"name": name, "uid": f"u-{name}"}
    status = {"allocatable": room, "capacity": room, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "status": status}


def pod(name, cpu="1", priority_class="", **spec):
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}
    if priority_class:
        spec["priorityClassName"] = priority_class
    meta = {"name": name, "namespace": "default"}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high", "uid": "u-high"},
    "value": 1_000,
}
TAINT = {"key": "gone", "effect": "NoExecute"}
TOLERATION = {"key": "gone", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 3}


def create(manifest):
    return lambda store, now: store.create(manifest, now)


def remove(name):
    return lambda store, now: store.delete(POD, "default", name, now, Deletion(grace_period_s=0))


def taint(name):
    patch = {"spec": {"taints": [TAINT]}}
    return lambda store, now: store.patch(NODE, "", name, patch, now)


SCENARIOS = {
    "placed": [(1, create(pod("a"))), (2, create(pod("b"))), (3, create(pod("c")))],
    "unschedulable": [(1, create(pod("a", cpu="9"))), (2, create(pod("b")))],
    "preempting": [
        (1, create(pod("a", cpu="2"))),
        (2, create(pod("b", cpu="2"))),
        (3, create(pod("urgent", cpu="2", priority_class="high"))),
        (5, remove("a")),
        (5, remove("b")),
    ],
    "tainted": [
        (1, create(pod("a"))),
        (2, create(pod("b", tolerations=[TOLERATION]))),
        (3, taint("n1")),
        (3, taint("n2")),
    ],
    "bound by another scheduler": [
        (1, create(pod("a", cpu="2", nodeName="n1"))),
        (2, create(pod("b", cpu="2"))),
        (3, create(pod("c", cpu="2", schedulerName="other"))),
    ],
}


def lines(world_class, acts):
    config = EngineConfig(seed=1, start=world_class.start)
    engine = build_running_engine(config, SilentReporter(), CONTROLLERS)
    world = world_class(engine, [HIGH, node("n1"), node("n2")])
    for after_s, act in acts:
        world.at(after_s, act)
    world.run(20)
    return world.engine.lines


@pytest.mark.parametrize("scenario", list(SCENARIOS))
def test_the_same_scenario_leads_to_the_same_commands(scenario, other_world):
    """The order of commands at one instant may differ."""
    acts = SCENARIOS[scenario]
    expected = lines(Simulated, acts)
    assert expected
    assert lines(other_world, acts) == expected
