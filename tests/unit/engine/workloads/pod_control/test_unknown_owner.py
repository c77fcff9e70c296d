"""Replacements for pods whose owners are missing, as in a dump of nodes and pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.engine.core.command import CreateObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.controller import Workloads

UNKNOWN = ("ReplicaSet", "web-54df9554fd", "rs")


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), place=lambda pod: "n2")


def test_loaded_pods_are_not_changed(world, build):
    """Terminating pods are not replaced either, because the real owner has replaced them."""
    terminating = {"deletionTimestamp": "1970-01-12T13:46:50Z", "deletionGracePeriodSeconds": 30}
    world.load(build.pod("a", UNKNOWN), build.pod("b", UNKNOWN, meta=terminating))
    world.delete("Pod", "b", grace=0)
    assert world.log == []


def test_a_deleted_pod_gets_an_equal_replacement(world, build):
    """Owner, labels, specification and class are equal; the name differs."""
    lost = build.pod("web-54df9554fd-abcde", UNKNOWN, priority=7, priorityClassName="urgent")
    world.load(lost)
    world.delete("Pod", "web-54df9554fd-abcde")
    _, manifest = [command.manifest for command in world.sent(CreateObject)]
    assert manifest["metadata"]["name"].startswith("web-54df9554fd-")
    assert manifest["metadata"]["ownerReferences"][0]["uid"] == "rs"
    assert manifest["metadata"]["labels"] == {"app": "web"}
    assert manifest["spec"] == {
        "containers": [{"name": "c", "image": "web:1"}],
        "priorityClassName": "urgent",
    }
    assert list(world.replaces().values()) == ["web-54df9554fd-abcde"]


def test_replacements_differ_like_their_originals(world, build):
    one = build.pod("a", UNKNOWN, schedulerName="one")
    world.load(one, build.pod("b", UNKNOWN, schedulerName="other"))
    world.delete("Pod", "b")
    world.delete("Pod", "a")
    schedulers = {
        world.replaces()[name]: pod["spec"]["schedulerName"] for name, pod in world.pods().items()
    }
    assert schedulers == {"a": "one", "b": "other"}


def test_a_missing_priority_class_is_created(world, build):
    """The class is created before it is needed; a priority without a class gets its own class."""
    known = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "known"},
        "value": 5,
    }
    world.load(
        known,
        build.pod("a", UNKNOWN, priority=5, priorityClassName="known"),
        build.pod("b", UNKNOWN, priority=7, priorityClassName="lost", preemptionPolicy="Never"),
        build.pod("c", UNKNOWN, priority=9),
    )
    assert [command.manifest for command in world.log] == [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "fairlead-priority-9"},
            "value": 9,
        },
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": "lost"},
            "value": 7,
            "preemptionPolicy": "Never",
        },
    ]
    world.delete("Pod", "c")
    (successor,) = [pod for name, pod in world.pods().items() if name in world.replaces()]
    assert successor["spec"]["priorityClassName"] == "fairlead-priority-9"


def test_a_pod_of_an_unknown_stateful_set_keeps_its_name(world, build):
    world.load(build.pod("db-0", ("StatefulSet", "db", "sts")))
    world.delete("Pod", "db-0")
    assert world.pods() == {}
    world.delete("Pod", "db-0", grace=0)
    assert world.pods()["db-0"]["spec"]["nodeName"] == "n2"
    assert world.replaces() == {"db-0": "db-0"}


def test_a_stateful_set_pod_is_replaced_after_its_name_is_free(world, build):
    """The real StatefulSet could not create the pod earlier either."""
    terminating = {"deletionTimestamp": "1970-01-12T13:46:50Z", "deletionGracePeriodSeconds": 30}
    world.load(build.pod("db-0", ("StatefulSet", "db", "sts"), meta=terminating))
    assert world.log == []
    world.delete("Pod", "db-0", grace=0)
    assert world.replaces() == {"db-0": "db-0"}


def test_a_pod_of_an_operator_whose_hostname_is_its_name_keeps_its_name(world, build):
    """Strimzi and CloudNativePG create the pod again only when the old one is gone."""
    owner = ("StrimziPodSet", "kafka", "uid")
    world.load(
        build.pod("kafka-0", owner, hostname="kafka-0"),
        build.pod("kafka-1", owner, hostname="kafka-1"),
        build.pod("other", owner, hostname="static"),
    )
    world.delete("Pod", "kafka-0")
    assert set(world.pods()) == {"kafka-1", "other"}
    world.delete("Pod", "kafka-0", grace=0)
    assert world.replaces() == {"kafka-0": "kafka-0"}
    world.delete("Pod", "other")
    [name] = [new for new, old in world.replaces().items() if old == "other"]
    assert name != "other"


@pytest.mark.parametrize("kind", ["Rollout", "Workflow", "Job", "ReplicationController"])
def test_pods_of_owners_of_any_kind_are_replaced(world, build, kind):
    world.load(build.pod("a", (kind, "x", "uid")))
    world.delete("Pod", "a", grace=0)
    assert list(world.replaces().values()) == ["a"]


@pytest.mark.parametrize(
    ("kind", "phase", "count"),
    [
        ("ReplicaSet", "Failed", 1),
        ("ReplicaSet", "Succeeded", 0),
        ("Job", "Failed", 0),
        ("Job", "Succeeded", 0),
        ("Workflow", "Failed", 0),
    ],
)
def test_deleted_finished_pods_are_replaced_only_if_they_are_replicas(
    world, build, kind, phase, count
):
    world.load(build.pod("a", (kind, "x", "uid")))
    world.patch_status("Pod", "a", {"phase": phase})
    world.delete("Pod", "a")
    assert len(world.pods()) == count


def test_an_owner_reference_without_uid_matches_by_name(world, build):
    """A hand-written snapshot may have references without uids."""
    owner = build.owned("ReplicaSet", "web", 1, uid="given-by-the-store")
    world.load(build.pod("a", ("ReplicaSet", "web", "")), owner)
    assert world.log == []


def test_an_owner_with_another_uid_is_a_different_owner(world, build):
    world.load(
        build.owned("ReplicaSet", "web", 1, uid="new"), build.pod("a", ("ReplicaSet", "web", "old"))
    )
    assert len(world.pods()) == 2


def test_a_refused_replacement_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.FORBIDDEN if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(build.pod("a", UNKNOWN), build.pod("b", UNKNOWN))
    world.delete("Pod", "a")
    world.delete("Pod", "b")
    assert world.pods() == {}
    down[0] = False
    world.run(seconds(1))
    assert sorted(world.replaces().values()) == ["a", "b"]


@given(
    kinds=st.lists(st.sampled_from(["ReplicaSet", "StatefulSet", "Job", "Custom"]), max_size=6),
    steps=st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=20),
    flaky=st.integers(2, 9),
)
def test_every_deleted_pod_is_replaced_exactly_once(new_world, build, kinds, steps, flaky):
    """Under any refusals, there is one live pod for each original."""
    tries = [0]

    def refuse(command):
        tries[0] += 1
        return FailureReason.INTERNAL_ERROR if tries[0] % flaky == 0 else None

    world = new_world(Workloads(), place=lambda pod: "n1")
    originals = [f"x{place}-0" for place in range(len(kinds))]
    world.load(
        *(
            build.pod(name, (kind, name.removesuffix("-0"), f"uid-of-{name}"))
            for name, kind in zip(originals, kinds, strict=True)
        )
    )
    for number, by_force in steps:
        if world.pods():
            world.refuse = lambda command: None
            world.delete(
                "Pod",
                sorted(world.pods())[number % len(world.pods())],
                grace=0 if by_force else None,
            )
            world.refuse = refuse
            world.run(seconds(2_000))
            for name in set(world.pods(alive=False)) - set(world.pods()):
                world.refuse = lambda command: None
                world.delete("Pod", name, grace=0)
                world.refuse = refuse
                world.run(seconds(2_000))
        names = [world.replaces().get(name, name) for name in world.pods()]
        assert sorted(names) == originals
