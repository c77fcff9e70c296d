"""Nominator: which pods are nominated to which node."""

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


def test_a_pod_is_nominated_to_one_node(info):
    """A second nomination replaces the first one."""
    nominator = Nominator()
    assert not nominator
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("a"), "n2")
    assert (nominator.node_of("uid-a"), nominator.nodes()) == ("n2", ["n2"])
    nominator.withdraw("uid-a")
    nominator.withdraw("uid-a")
    assert (nominator.node_of("uid-a"), nominator.nodes(), bool(nominator)) == ("", [], False)


def test_nominated_pods_are_in_order_of_their_last_nomination(info):
    """A pod that is nominated again comes last."""
    nominator = Nominator()
    for name in ("a", "b", "a", "c"):
        nominator.nominate(info(name), "n1")
    assert names(nominator.pods_on("n1")) == ["b", "a", "c"]
    assert nominator.pods_on("elsewhere") == []


def test_the_newest_version_of_a_nominated_pod_is_kept(info):
    """Other pods must fit beside its newest labels and requests."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("a", labels={"v": "2"}), "n1")
    (kept,) = nominator.pods_on("n1")
    assert kept.labels == {"v": "2"}


def test_rivals_are_other_pods_of_equal_or_higher_priority(info):
    """Pods of lower priority and all versions of the pod itself are left out."""
    nominator = Nominator()
    for name, priority in (("low", 1), ("equal", 5), ("high", 9), ("self", 5)):
        nominator.nominate(info(name, priority), "n1")
    assert names(nominator.competing_pods_on("n1", info("self", 5))) == ["equal", "high"]
    assert names(nominator.competing_pods_on("n2", info("self", 5))) == []


def test_the_log_contains_every_affected_node(info):
    """Both the former node and the new one."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a"), "n2")
    nominator.withdraw("nobody")
    assert nominator.log.since(position) == ["n1", "n2"]


def test_an_update_that_plugins_do_not_read_is_not_logged(info):
    """Other plugins do not read the status of a nominated pod."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    nominator.nominate(info("b"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a"), "n1")
    assert nominator.log.since(position) == []
    assert names(nominator.pods_on("n1")) == ["b", "a"]


@pytest.mark.parametrize("change", [{"priority": 3}, {"labels": {"v": "2"}}, {"terminating": True}])
def test_an_update_that_plugins_read_is_logged(info, change):
    """Plugins read all of these fields of a nominated pod."""
    nominator = Nominator()
    nominator.nominate(info("a"), "n1")
    position = nominator.log.position
    nominator.nominate(info("a", **change), "n1")
    assert nominator.log.since(position) == ["n1"]


def test_an_update_of_the_shape_is_logged():
    """Its requests differ."""
    shapes, nominator = Cluster().shapes, Nominator()
    for cpu in ("1", "2"):
        pod = make_pod("a", requests={"cpu": cpu})
        nominator.nominate(PodInfo(pod, shapes.shape_of(pod)), "n1")
    assert nominator.log.since(0) == ["n1", "n1"]
