"""StatefulSets: names that come back."""

from __future__ import annotations

import pytest

from fairlead.core.command import CreateObject, DeleteObject
from fairlead.core.instant import seconds
from fairlead.core.stimulus import FailureReason
from fairlead.workloads.controller import Workloads
from fairlead.workloads.stateful_set import ordinal_of

OWNER = ("StatefulSet", "db", "sts")


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), place=lambda pod: "n1")


def stateful_set(build, replicas, **fields):
    return build.owned("StatefulSet", "db", replicas, uid="sts", **fields)


@pytest.mark.parametrize(
    ("owner", "name", "ordinal"),
    [
        ("db", "db-0", 0),
        ("db", "db-12", 12),
        ("db", "db-x", None),
        ("db", "db", None),
        ("db", "my-db-0", None),
        ("my-db", "my-db-3", 3),
        ("db", "db-", None),
    ],
)
def test_ordinal(owner, name, ordinal):
    assert ordinal_of(owner, name) == ordinal


def test_missing_ordinals_are_created_with_their_labels(world, build):
    world.load(stateful_set(build, 3), build.pod("db-1", OWNER))
    assert set(world.pods()) == {"db-0", "db-1", "db-2"}
    pod = world.get("Pod", "db-2")
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "statefulset.kubernetes.io/pod-name": "db-2",
        "apps.kubernetes.io/pod-index": "2",
    }
    assert pod["spec"]["hostname"] == "db-2"
    assert world.replaces() == {}


def test_a_lost_pod_comes_back_when_its_name_is_free(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER), build.pod("db-1", OWNER))
    world.delete("Pod", "db-0")
    assert set(world.pods()) == {"db-1"}
    world.delete("Pod", "db-0", grace=0)
    assert set(world.pods()) == {"db-0", "db-1"}
    assert world.replaces() == {"db-0": "db-0"}


def test_a_finished_pod_is_deleted_and_comes_back(world, build):
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER))
    world.patch_status("Pod", "db-0", {"phase": "Failed"})
    assert world.pods()["db-0"].get("status", {}) == {}
    assert len(world.sent(DeleteObject)) == 1


def test_the_highest_ordinals_go(world, build):
    world.load(stateful_set(build, 3), *(build.pod(f"db-{place}", OWNER) for place in range(3)))
    world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    assert set(world.pods()) == {"db-0"}
    for name in ("db-1", "db-2"):
        world.delete("Pod", name, grace=0)
    assert set(world.pods(alive=False)) == {"db-0"}


def test_scaling_down_is_no_loss(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER), build.pod("db-1", OWNER))
    world.patch("StatefulSet", "db", {"spec": {"replicas": 1}})
    world.delete("Pod", "db-1", grace=0)
    world.patch("StatefulSet", "db", {"spec": {"replicas": 2}})
    assert set(world.pods()) == {"db-0", "db-1"}
    assert world.replaces() == {}


def test_pods_of_other_names_are_left_alone(world, build):
    world.load(stateful_set(build, 1), build.pod("db-canary", OWNER))
    assert set(world.pods()) == {"db-canary", "db-0"}


def test_a_name_somebody_else_has_is_waited_for(world, build):
    """A bare pod of that name: refused as taken, tried again later."""
    world.load(build.pod("db-0"), stateful_set(build, 1))
    assert world.sent(CreateObject)
    world.delete("Pod", "db-0", grace=0)
    world.run(seconds(100))
    assert world.pods()["db-0"]["metadata"]["ownerReferences"][0]["uid"] == "sts"


def test_a_refusal_keeps_the_name_of_the_lost(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(stateful_set(build, 1), build.pod("db-0", OWNER))
    world.delete("Pod", "db-0", grace=0)
    assert world.pods() == {}
    down[0] = False
    world.run(seconds(1))
    assert world.replaces() == {"db-0": "db-0"}


def test_with_its_owner_a_pod_goes(world, build):
    world.load(stateful_set(build, 2), build.pod("db-0", OWNER))
    world.delete("StatefulSet", "db")
    assert world.pods() == {}
