"""The plugins of a profile as an extender of another scheduler: filter, prioritize, preempt."""

from __future__ import annotations

import pytest

from fairlead.engine.core.status import Code, unschedulable
from fairlead.engine.extender_backend import UNKNOWN, ExtenderBackend, ExtenderBackendError
from fairlead.engine.framework.profile import Profile
from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.testing.builders import make_node, make_pod

LEAST = (("PrioritySort", 0), ("DefaultBinder", 0))


class Picky:
    """A plugin that filters and scores by the number in a node's name; "broken" makes it fail."""

    name = "Picky"

    def filter(self, state, pod, node):
        if "broken" in pod.pod.metadata.name:
            raise ValueError("broken filter")
        return unschedulable("odd") if int(node.name[-1]) % 2 else None

    def score(self, state, pod, node):
        if "unscored" in pod.pod.metadata.name:
            raise ValueError("broken score")
        return int(node.name[-1]) * 10


def advise(*objects, plugins=(("Picky", 1),), profiles=None):
    profiles = profiles or (Profile(plugins=(*LEAST, *plugins)),)
    factories = {"Picky": lambda _handle, _args: Picky()}
    return ExtenderBackend(SchedulerConfig(profiles, out_of_tree=factories), objects)


NODES = [make_node(f"n{number}") for number in range(5)]


def test_only_the_nodes_of_the_request_are_filtered():
    found = advise(*NODES).verdicts(make_pod("p"), ["n3", "n0"])
    assert list(found) == ["n3", "n0"]
    assert (found["n3"].message, found["n0"]) == ("odd", None)


@pytest.mark.parametrize("nodes", [[], NODES])
def test_no_pod_fits_an_unknown_node(nodes):
    assert advise(*nodes).verdicts(make_pod("p"), ["x"]) == {"x": UNKNOWN}


def test_scores_are_scaled_to_the_maximum():
    adviser = advise(*NODES)
    assert adviser.scores(make_pod("p"), ["n4", "n2", "n3", "x"], 10) == {
        "n4": 4,
        "n2": 2,
        "n3": 0,
        "x": 0,
    }
    assert advise().scores(make_pod("p"), ["x"], 10) == {"x": 0}


def test_scores_are_weighted_averages():
    """40 of 100 of one plugin, and 0 of another plugin with weight 3."""
    profile = Profile(plugins=(*LEAST, ("Picky", 1), ("NodeAffinity", 3)))
    node = make_node("n5")
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}
        ]
    }
    pod = make_pod("p", spec={"affinity": {"nodeAffinity": preferred}})
    adviser = advise(make_node("n4"), node, profiles=(profile,))
    assert adviser.scores(pod, ["n4"], 100) == {"n4": 10}


def test_without_score_plugins_there_are_no_scores():
    adviser = advise(*NODES, plugins=(("NodeName", 0),))
    assert adviser.scores(make_pod("p"), ["n1"], 10) == {"n1": 0}


def test_scores_are_normalized_over_the_nodes_of_the_request():
    """Score plugins with NormalizeScore compare nodes with each other."""
    taints = [f"k{number}:PreferNoSchedule" for number in range(4)]
    tainted = [make_node(f"n{count}", taints=taints[:count]) for count in (0, 2, 4)]
    adviser = advise(*tainted, plugins=(("TaintToleration", 1),))
    assert adviser.scores(make_pod("p"), ["n0", "n2", "n4"], 10) == {"n0": 10, "n2": 5, "n4": 0}
    assert adviser.scores(make_pod("p"), ["n0", "n2"], 10) == {"n0": 10, "n2": 0}


def test_the_pod_selects_the_profile_and_the_first_is_the_default():
    picky = Profile(scheduler_name="picky", plugins=(*LEAST, ("Picky", 1)))
    adviser = advise(*NODES, profiles=(Profile(plugins=LEAST), picky))
    mine = make_pod("p", spec={"schedulerName": "picky"})
    assert adviser.verdicts(mine, ["n1"])["n1"].message == "odd"
    assert adviser.verdicts(make_pod("p"), ["n1"]) == {"n1": None}
    other = make_pod("p", spec={"schedulerName": "another"})
    assert adviser.verdicts(other, ["n1"]) == {"n1": None}


def test_the_newest_version_of_a_node_is_used():
    adviser = advise(make_node("n0"), plugins=(("NodeUnschedulable", 0),))
    adviser.put_node(make_node("n0", unschedulable=True))
    adviser.put_node(make_node("n1"))
    found = adviser.verdicts(make_pod("p"), ["n0", "n1"])
    assert found["n0"].code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert found["n1"] is None


def test_the_pod_of_a_request_does_not_count_on_a_node():
    fit = (("NodeResourcesFit", 1),)
    there = make_pod("p", node="n0", requests={"cpu": "3"})
    adviser = advise(make_node("n0"), there, plugins=fit)
    incoming = make_pod("p", requests={"cpu": "3"})
    assert adviser.verdicts(incoming, ["n0"]) == {"n0": None}


@pytest.fixture
def full():
    """A cluster of two full nodes; the pods have the names of their nodes."""
    pods = [make_pod(f"on-{name}", node=name, requests={"cpu": "4"}, uid=f"u-{name}")
            for name in ("n0", "n1")]  # fmt: skip
    return advise(make_node("n0"), make_node("n1"), *pods, plugins=(("NodeResourcesFit", 1),))


def test_a_pod_fits_if_enough_victims_are_removed(full):
    pod = make_pod("p", requests={"cpu": "4"})
    assert full.with_room(pod, {"n0": ["u-n0"], "n1": ["u-n0"], "x": ["u-x"]}) == ["n0", "x"]
    assert full.verdicts(pod, ["n0"])["n0"].message == "Insufficient cpu"  # nothing has changed


def test_no_victims_are_enough_if_the_pod_never_fits(full):
    pod = make_pod("p", requests={"cpu": "5"})
    assert full.with_room(pod, {"n0": ["u-n0"]}) == []
    assert advise().with_room(pod, {"n0": []}) == ["n0"]


def test_preemption_does_not_help_on_nodes_excluded_by_pre_filter():
    named = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": named}}
    pod = make_pod("p", spec={"affinity": {"nodeAffinity": affinity}})
    adviser = advise(*NODES, plugins=(("NodeAffinity", 0),))
    assert adviser.with_room(pod, {"n0": [], "n1": []}) == ["n1"]


@pytest.mark.parametrize(
    ("name", "ask"),
    [
        ("broken", lambda adviser, pod: adviser.verdicts(pod, ["n0"])),
        ("broken", lambda adviser, pod: adviser.scores(pod, ["n0"], 10)),
        ("unscored", lambda adviser, pod: adviser.scores(pod, ["n0", "n2"], 10)),
        ("broken", lambda adviser, pod: adviser.with_room(pod, {"n0": []})),
    ],
)
def test_a_failing_plugin_is_reported(name, ask):
    with pytest.raises(ExtenderBackendError, match="plugin 'Picky' failed in"):
        ask(advise(*NODES), make_pod(name))
