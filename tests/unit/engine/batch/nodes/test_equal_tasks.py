"""Equal tasks that reuse a plan are placed on the nodes that a new run of the plugins chooses."""

from __future__ import annotations

import pytest

from fairlead.api.objects import (
    DeviceClass,
    DeviceClassSpec,
    Namespace,
    ObjectMeta,
    Service,
    ServiceSpec,
)
from fairlead.api.well_known_label import HOSTNAME, ZONE
from fairlead.engine.batch.nodes.node_choice import NodeChoice
from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.core.tie_break import TieBreak
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_node, make_pod
from fairlead.testing.random_cluster import Chance

NODES = [f"n{number}" for number in range(6)]
GPU = "example.com/gpu"
ALIKE = {"matchLabels": {"app": "a"}}
TERM = {"labelSelector": ALIKE, "topologyKey": ZONE}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD = {"maxSkew": 1, "topologyKey": ZONE, "labelSelector": ALIKE}
SPECS = [
    {},
    {},
    {},
    {"affinity": {"podAntiAffinity": {REQUIRED: [TERM]}}},
    {"affinity": {"podAffinity": {PREFERRED: [{"weight": 5, "podAffinityTerm": TERM}]}}},
    {"topologySpreadConstraints": [SPREAD | {"whenUnsatisfiable": "DoNotSchedule"}]},
]


def any_node(chance, name):
    labels = {HOSTNAME: name, ZONE: chance.of(["z1", "z2"])}
    devices = {GPU: 9} if chance.one_in(2) else {}
    cordoned = chance.one_in(8)
    return make_node(name, labels=labels, cpu=40, devices=devices, unschedulable=cordoned)


def any_kind(chance, spec=None):
    return {
        "labels": {"app": chance.of("ab")},
        "requests": {"cpu": "1"} | chance.of([{}, {"memory": "1Gi"}, {GPU: "1"}]),
        "spec": spec or {},
    }


def any_change(chance, placed, number):
    match chance.below(12):
        case 0:
            return ObjectChanged(any_node(chance, chance.of(NODES)))
        case 1:
            selector = chance.of([{"app": "a"}, {"app": "c"}])
            meta = ObjectMeta(name="web", namespace="default")
            return ObjectChanged(Service(metadata=meta, spec=ServiceSpec(selector=selector)))
        case 2:
            spec = DeviceClassSpec(extended_resource_name=chance.of(["", GPU]))
            return ObjectChanged(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec))
        case 3:
            labels = chance.of([{}, {"team": "x"}])
            return ObjectChanged(Namespace(metadata=ObjectMeta(name="default", labels=labels)))
        case 4 | 5 | 6 | 7 if placed:
            return ObjectDeleted(placed.pop(chance.below(len(placed))))
        case _:
            kind = any_kind(chance, chance.of(SPECS))
            placed.append(make_pod(f"p{number}", node=chance.of(NODES), **kind))
            return ObjectChanged(placed[-1])


def run(harness, seed):
    """Compare choices with and without reuse; return how often the plan alone decided."""
    chance, placed, decided = Chance(seed), [], 0
    harness.put(any_node(chance, name) for name in NODES)
    kinds = [any_kind(chance) for _ in range(3)] + [any_kind(chance, chance.of(SPECS))]
    for step in range(40):
        harness.tell(any_change(chance, placed, step))
        choices = harness.session().policy.choices.shared
        for number in range(4):
            pod = make_pod(f"new-{step}-{number}", **chance.of(kinds))
            info = PodInfo(pod, harness.cluster.shapes.shape_of(pod))
            for kept in (choices.now, choices.ignoring_resources):
                decided += kept._is_decided_by_plan(info)
                new = NodeChoice(kept.framework)
                assert kept.pick(info, TieBreak(number)) is new.pick(info, TieBreak(number))
    return decided


@pytest.mark.parametrize("seed", range(4))
def test_reused_choices_equal_those_of_a_new_run_of_the_plugins(make_harness, seed):
    """Given random changes, when equal tasks are placed, then reused and new choices are equal."""
    run(make_harness("fairlead"), seed)


def test_the_comparison_covers_both_kinds_of_choices(make_harness):
    """The plan alone decides about some of the tasks, but not about all of them."""
    assert 40 < run(make_harness("fairlead"), 0) < 320


def test_a_service_that_selects_the_tasks_ends_the_reuse(make_harness):
    """Equal tasks go to any of two equal nodes, until a Service spreads them."""
    harness = make_harness("fairlead")
    for name, app in (("n1", "a"), ("n2", "b")):
        harness.put(make_node(name, labels={HOSTNAME: name, ZONE: name}))
        harness.put(make_pod(f"on-{name}", node=name, labels={"app": app}, requests={"cpu": "1"}))

    def picked():
        choice = harness.session().policy.choices.shared.now
        pod = make_pod("waiting", labels={"app": "a"}, requests={"cpu": "1"})
        task = PodInfo(pod, harness.cluster.shapes.shape_of(pod))
        return {choice.pick(task, TieBreak(seed)).name for seed in range(10)}

    assert picked() == {"n1", "n2"}
    meta = ObjectMeta(name="web", namespace="default")
    harness.put(Service(metadata=meta, spec=ServiceSpec(selector={"app": "a"})))
    assert picked() == {"n2"}
