"""CrossNodePreemption: preemption of pods on other nodes of the zone."""

from __future__ import annotations

import pytest

from fairlead.testing import PluginScene, make_budget, make_node, make_pod

ZONE = "topology.kubernetes.io/zone"
BATCH = {"app": "batch"}


def apart_from(labels, key=ZONE, **term):
    """Return required anti-affinity."""
    one = {"labelSelector": {"matchLabels": labels}, "topologyKey": key, **term}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [one]}
    return {"affinity": {"podAntiAffinity": terms}}


def newcomer(priority=1000, cpu="3", **term):
    """Return a pod that must not share its zone with batch pods."""
    return make_pod(
        "newcomer", priority=priority, requests={"cpu": cpu}, spec=apart_from(BATCH, **term)
    )


def batch(name, node, priority=10, **more):
    """A batch pod that requests 1 CPU."""
    more = {"requests": {"cpu": "1"}, "labels": BATCH} | more
    return make_pod(name, node=node, priority=priority, **more)


@pytest.fixture
def scene(example):
    """Zone a with the nodes a0, which only the removal of a batch pod makes free, and a1, empty."""
    scene = PluginScene(
        example("cross_node_preemption.py:CrossNodePreemption"),
        nodes=[make_node(name, labels={ZONE: name[0]}) for name in ("a0", "a1")],
    )
    scene.add(make_pod("database", node="a0", priority=2000, requests={"cpu": "3"}))
    return scene


def room(scene, pod=None):
    """Return (nominated node, names of the victims), or None if preemption does not help."""
    found = scene.make_room(pod or newcomer())
    if found is None:
        return None
    return found.nominated_node, [victim.pod.metadata.name for victim in found.victims]


def test_a_pod_on_another_node_of_the_zone_is_preempted(scene) -> None:
    scene.add(batch("nightly", "a0"))
    assert room(scene) == ("a1", ["nightly"])


def test_a_pod_with_anti_affinity_to_the_preemptor_is_preempted(scene) -> None:
    repelling = apart_from({"app": "web"})
    scene.add(batch("nightly", "a0", labels={}, spec=repelling))
    pod = make_pod("web", labels={"app": "web"}, priority=1000, requests={"cpu": "3"})
    assert room(scene, pod) == ("a1", ["nightly"])


def test_pods_that_do_not_block_the_preemptor_are_not_preempted(scene) -> None:
    scene.add(batch("nightly", "a0"), batch("other", "a1", labels={}))
    assert room(scene) == ("a1", ["nightly"])


def test_pods_on_the_same_node_are_preempted_as_well(scene) -> None:
    scene.add(batch("nightly", "a0"), batch("big", "a1", labels={}, requests={"cpu": "2"}))
    assert room(scene) == ("a1", ["big", "nightly"])


def test_the_zone_whose_victims_have_lower_priority_is_chosen(scene) -> None:
    scene.add(make_node("b0", labels={ZONE: "b"}), make_node("b1", labels={ZONE: "b"}))
    scene.add(make_pod("cache", node="b0", priority=2000, requests={"cpu": "3"}))
    scene.add(batch("nightly", "a0", 20), batch("hourly", "b0", 10))
    assert room(scene) == ("b1", ["hourly"])


@pytest.mark.parametrize(
    ("pod", "others"),
    [
        pytest.param(newcomer(), [("nightly", 1000)], id="equal priority is not preempted"),
        pytest.param(newcomer(cpu="5"), [("nightly", 10)], id="the pod does not fit in any case"),
        pytest.param(newcomer(namespaces=["other"]), [], id="no pod blocks the preemptor"),
        pytest.param(
            make_pod("meek", priority=1000, requests={"cpu": "3"},
                     spec=apart_from(BATCH) | {"preemptionPolicy": "Never"}),
            [("nightly", 10)],
            id="preemptionPolicy Never",
        ),
    ],
)  # fmt: skip
def test_no_node_is_returned_if_preemption_does_not_help(scene, pod, others) -> None:
    scene.add(*(batch(name, "a0", priority) for name, priority in others))
    assert scene.make_room(pod) is None


def test_the_namespace_selector_is_respected(scene) -> None:
    scene.add(batch("nightly", "a0", namespace="jobs"))
    assert scene.evaluate(newcomer()).choices == ["a1"]
    assert room(scene, newcomer(namespaceSelector={})) == ("a1", ["nightly"])


def test_budget_violations_are_counted(scene) -> None:
    scene.add(batch("nightly", "a0"), make_budget("guard", BATCH, allowed=0))
    assert scene.make_room(newcomer()).pdb_violations == 1


def test_no_further_pods_are_preempted_while_earlier_victims_terminate(scene) -> None:
    scene.add(batch("nightly", "a0", terminating=True))
    pod = make_pod(
        "newcomer", priority=1000, requests={"cpu": "3"}, nominated="a1", spec=apart_from(BATCH)
    )
    assert scene.make_room(pod) is None
    assert "earlier victims are still leaving" in scene.decide(pod).message


def test_the_zone_is_reserved_for_the_nominated_pod(scene) -> None:
    scene.nominate(newcomer(), "a1")
    verdicts = scene.evaluate(make_pod("nightly", labels=BATCH, priority=10)).verdicts
    assert verdicts["a0"].message == "node(s) kept free for a pod of higher priority"
    assert scene.evaluate(make_pod("equal", labels=BATCH, priority=1000)).verdicts["a0"] is None


def test_the_search_is_bounded(scene, example) -> None:
    small = PluginScene(
        example("cross_node_preemption.py:CrossNodePreemption"),
        args={"CrossNodePreemption": {"podsMax": 1}},
        nodes=[make_node(name, labels={ZONE: name[0]}) for name in ("a0", "a1")],
    )
    small.add(make_pod("database", node="a0", priority=2000, requests={"cpu": "2"}))
    small.add(batch("nightly", "a0"), batch("hourly", "a0"))
    assert small.make_room(newcomer()) is None
