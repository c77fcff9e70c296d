"""Nominator: who was promised which node."""

from __future__ import annotations

import pytest

from fairlead.engine.framework.preemption.nominator import Nominator
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo
from fairlead.testing.builders import make_pod


@pytest.fixture
def info():
    shapes = Cluster().shapes
    return lambda name, priority=0, **more: PodInfo(
        make_pod(name, priority=priority, **more), shapes.shape_of(make_pod(name))
    )


def names(pods):
    return [pod.pod.metadata.name for pod in pods]


def test_a_promise_is_of_one_node(info):
    """A second nomination replaces the first one."""
    nominator = Nominator()
    assert not nominator
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("a"), "n2")
    assert (nominator.node_of("uid-a"), nominator.nodes()) == ("n2", ["n2"])
    nominator.withdraw("uid-a")
    nominator.withdraw("uid-a")
    assert (nominator.node_of("uid-a"), nominator.nodes(), bool(nominator)) == ("", [], False)


def test_promises_are_in_order_of_the_last(info):
    """A pod that is nominated again comes last."""
    nominator = Nominator()
    for name in ("a", "b", "a", "c"):
        nominator.nominate(info(name), "n1")
    assert names(nominator.pods_on("n1")) == ["b", "a", "c"]
    assert nominator.pods_on("elsewhere") == []


def test_the_newest_version_is_kept(info):
    """Other pods must fit beside its newest labels and requests."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("a", labels={"v": "2"}), "n1")
    (kept,) = nominator.pods_on("n1")
    assert kept.labels == {"v": "2"}


def test_rivals_are_the_others_who_matter_as_much(info):
    """Pods of lower priority are left out, and so is every version of the pod itself."""
    nominator = Nominator()
    for name, priority in (("low", 1), ("equal", 5), ("high", 9), ("self", 5)):
        nominator.nominate(info(name, priority), "n1")
    assert names(nominator.competing_pods_on("n1", info("self", 5))) == ["equal", "high"]
    assert names(nominator.competing_pods_on("n2", info("self", 5))) == []


def test_the_log_names_every_node_concerned(info):
    """Both the former node and the new one."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a"), "n2")
    nominator.withdraw("nobody")
    assert nominator.log.since(position) == ["n1", "n2"]


def test_a_version_that_counts_like_the_one_before_is_not_logged(info):
    """The status of a preemptor names a node to which it has been nominated already."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("b"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a"), "n1")
    assert nominator.log.since(position) == []
    assert names(nominator.pods_on("n1")) == ["b", "a"]


@pytest.mark.parametrize("change", [{"priority": 3}, {"labels": {"v": "2"}}, {"terminating": True}])
def test_a_version_that_may_count_otherwise_is_logged(info, change):
    """Plugins read all of this of a nominated pod."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a", **change), "n1")
    assert nominator.log.since(position) == ["n1"]


def test_a_version_with_another_shape_is_logged():
    """It takes more or less room."""
    shapes, nominator = Cluster().shapes, Nominator()
    for cpu in ("1", "2"):
        pod = make_pod("a", requests={"cpu": cpu})
        nominator.nominate(PodInfo(pod, shapes.shape_of(pod)), "n1")
    assert nominator.log.since(0) == ["n1", "n1"]
