"""ReplicaSets and ReplicationControllers: creation, replacement and deletion of pods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.engine.core.command import CreateObject, DeleteObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandFailed,
    CommandSucceeded,
    FailureReason,
    ObjectDeleted,
    ObjectsLoaded,
)
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1")


def replica_set(build, replicas, **fields):
    return build.owned("ReplicaSet", "web", replicas, uid="rs", **fields)


OWNER = ("ReplicaSet", "web", "rs")
T0 = seconds(1_000)


def test_missing_pods_are_created_from_the_template(world, build):
    world.load(replica_set(build, 3))
    pods = world.pods()
    assert len(pods) == 3
    for name, pod in pods.items():
        assert name.startswith("web-")
        assert pod["metadata"]["labels"] == {"app": "web"}
        assert pod["metadata"]["ownerReferences"][0]["uid"] == "rs"
        assert pod["spec"] == {"containers": [{"name": "c", "image": "web:1"}], "nodeName": "n1"}
    assert world.replaces() == {}


def test_existing_pods_count(world, build):
    world.load(replica_set(build, 3), build.pod("web-a", OWNER), build.pod("web-b", OWNER))
    assert len(world.pods()) == 3
    assert len(world.sent(CreateObject)) == 1


def test_a_replication_controller_creates_pods(world, build):
    owner = build.owned("ReplicationController", "web", 2, uid="rc", version="v1", selector={})
    world.load(owner)
    assert len(world.pods()) == 2


def test_a_deleted_pod_is_replaced_at_once(world, build):
    """It is replaced while it terminates, and not again when it is removed."""
    world.load(replica_set(build, 2), build.pod("web-a", OWNER), build.pod("web-b", OWNER))
    world.delete("Pod", "web-a")
    assert "deletionTimestamp" in world.get("Pod", "web-a")["metadata"]
    assert list(world.replaces().values()) == ["web-a"]
    world.delete("Pod", "web-a", grace=0)
    assert len(world.pods(alive=False)) == 2


def test_a_replacement_of_a_replacement_names_the_first(world, build):
    world.load(replica_set(build, 1), build.pod("web-a", OWNER))
    for _ in range(3):
        (name,) = world.pods()
        world.delete("Pod", name)
    assert list(world.replaces().values()) == ["web-a"]


def test_pods_are_replaced_in_the_order_of_their_loss(world, build):
    """Creation fails while pods are lost; the replacements follow in the order of the losses."""
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(
        replica_set(build, 3), *(build.pod(f"web-{name}", OWNER) for name in ("a", "b", "c"))
    )
    for name in ("web-c", "web-a", "web-b"):
        world.delete("Pod", name)
    assert world.pods() == {}
    down[0] = False
    world.run(seconds(10))
    created = [
        command.manifest["metadata"]["annotations"]["fairlead.dev/replaces"]
        for command in world.sent(CreateObject)
        if command.manifest["metadata"]["name"] in world.pods()
    ]
    assert created == ["web-c", "web-a", "web-b"]


def test_a_refused_replacement_keeps_its_position(build):
    """The pod that was lost first is replaced first, although another was lost meanwhile."""
    controller = Workloads()
    pods = {name: decode(build.pod(name, OWNER)) for name in ("a", "b")}
    controller.handle(ObjectsLoaded([decode(replica_set(build, 2)), *pods.values()]), T0)
    (first,) = controller.handle(ObjectDeleted(pods["b"]), T0)
    assert controller.handle(ObjectDeleted(pods["a"]), T0) == []
    failure = CommandFailed(first, FailureReason.INTERNAL_ERROR, "no")
    controller.handle(failure, T0)
    (second,) = controller.handle_deadline(controller.next_deadline())
    (third,) = controller.handle(CommandSucceeded(second), T0)
    replaced = [
        command.manifest["metadata"]["annotations"]["fairlead.dev/replaces"]
        for command in (first, second, third)
    ]
    assert replaced == ["b", "b", "a"]


def test_a_failed_pod_is_replaced(world, build):
    world.load(replica_set(build, 1), build.pod("web-a", OWNER))
    world.patch_status("Pod", "web-a", {"phase": "Failed"})
    assert list(world.replaces().values()) == ["web-a"]


def test_a_pod_that_is_loaded_as_terminating_counts_as_missing(world, build):
    terminating = {"deletionTimestamp": "1970-01-12T13:46:50Z", "deletionGracePeriodSeconds": 30}
    world.load(
        replica_set(build, 2),
        build.pod("web-a", OWNER),
        build.pod("web-b", OWNER, meta=terminating),
    )
    assert list(world.replaces().values()) == ["web-b"]


def test_an_additional_replica_replaces_no_pod(world, build):
    world.load(replica_set(build, 1), build.pod("web-a", OWNER))
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 4}})
    assert len(world.pods()) == 4
    assert world.replaces() == {}


def test_pods_deleted_by_scaling_down_are_not_replaced(world, build):
    """The unassigned pod is deleted first, and is not counted as lost when the set grows again."""
    world.load(
        replica_set(build, 3),
        build.pod("web-a", OWNER),
        build.pod("web-b", OWNER, phase="Pending"),
        build.pod("web-c", OWNER),
    )
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    assert set(world.pods()) == {"web-a", "web-c"}
    assert world.sent(DeleteObject)[0].why == "scaled down"
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 3}})
    assert len(world.pods()) == 3
    assert world.replaces() == {}


def test_surplus_pods_are_ranked_again_after_each_five_hundred(world, build):
    """Then another node has the most pods."""
    full = [build.pod(f"web-a{n}", OWNER, node="a") for n in range(520)]
    emptier = [build.pod(f"web-b{n}", OWNER, node="b") for n in range(60)]
    world.load(replica_set(build, 580), *full, *emptier)
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 75}})
    nodes = [pod["spec"]["nodeName"] for pod in world.pods().values()]
    assert (nodes.count("a"), nodes.count("b")) == (20, 55)


def test_a_deleted_pod_is_not_replaced_after_scaling_down(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(replica_set(build, 2), build.pod("web-a", OWNER), build.pod("web-b", OWNER))
    world.delete("Pod", "web-a")
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 1}})
    down[0] = False
    world.patch("ReplicaSet", "web", {"spec": {"replicas": 2}})
    world.run(seconds(10))
    assert len(world.pods()) == 2
    assert world.replaces() == {}


def test_a_name_in_use_is_skipped(world, build):
    """The first generated name belongs to a foreign pod."""
    world.load(replica_set(build, 1))
    (name,) = world.pods()
    other = type(world)(Workloads()).load(build.pod(name), replica_set(build, 1))
    assert len(other.pods()) == 2
    assert other.events == []


def test_a_refused_pod_is_created_again_with_exponential_backoff(world, build):
    """One pod at a time is tried, with one event each; after a success all others are created."""
    down = [True]
    world.refuse = lambda one: (
        FailureReason.FORBIDDEN if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(replica_set(build, 100))
    assert len(world.sent(CreateObject)) == 1
    world.run(seconds(0.040))  # attempts at 5, 15 and 35 ms
    assert len(world.sent(CreateObject)) == 4
    assert {event.reason for event in world.events} == {"FailedCreate"}
    assert world.events[0].note == "Error creating: refused by the test"
    assert world.events[0].regarding.kind == "ReplicaSet"
    down[0] = False
    world.run(seconds(0.035))
    assert len(world.pods()) == 100


def test_a_refused_deletion_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.INTERNAL_ERROR if down[0] and isinstance(one, DeleteObject) else None
    )
    world.load(replica_set(build, 1), build.pod("web-a", OWNER), build.pod("web-b", OWNER))
    assert len(world.pods()) == 2
    down[0] = False
    world.run(seconds(1))
    assert len(world.pods()) == 1


def test_pods_of_a_deleted_owner_are_deleted(world, build):
    world.load(replica_set(build, 2), build.pod("web-a", OWNER))
    world.delete("ReplicaSet", "web")
    assert world.pods() == {}
    assert world.sent(DeleteObject)[0].why == "its owner was deleted"


def test_a_released_pod_is_replaced(world, build):
    world.load(replica_set(build, 1), build.pod("web-a", OWNER))
    world.patch("Pod", "web-a", {"metadata": {"ownerReferences": None}})
    assert len(world.pods()) == 2


def test_an_invalid_pod_template_is_reported(world, build):
    world.load(replica_set(build, 2, template={"spec": {"containers": "none"}}))
    assert world.pods() == {}
    assert world.events[0].note == "Error creating: spec.template describes no pod"


def test_pods_without_an_owner_are_not_replaced(world, build):
    """This includes a static pod, whose owner is the node."""
    static = build.pod("static", ("Node", "n1", "node-uid"))
    world.load(build.pod("bare"), static)
    world.delete("Pod", "bare")
    world.delete("Pod", "static")
    assert world.pods() == {}


@given(
    replicas=st.integers(0, 6),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("scale"), st.integers(0, 6)),
            st.tuples(st.sampled_from(["delete", "force", "fail"]), st.integers(0, 10)),
        ),
        max_size=12,
    ),
    flaky=st.integers(1, 5),
)
def test_settled_means_exactly_the_desired_replicas(new_world, build, replicas, steps, flaky):
    """After deletions, failures, refusals and scaling, no pod has two replacements."""
    tries = [0]

    def refuse(command):
        tries[0] += 1
        if tries[0] % flaky == 0 and flaky > 1 and isinstance(command, CreateObject):
            return FailureReason.INTERNAL_ERROR
        return None

    world = new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1", refuse=refuse)
    world.load(replica_set(build, replicas))
    world.run(seconds(5_000))
    for act, number in steps:
        alive = sorted(world.pods())
        if act == "scale":
            replicas = number
            world.patch("ReplicaSet", "web", {"spec": {"replicas": number}})
        elif alive and act == "fail":
            world.patch_status("Pod", alive[number % len(alive)], {"phase": "Failed"})
        elif alive:
            grace = 0 if act == "force" else None
            world.delete("Pod", alive[number % len(alive)], grace=grace)
        world.run(seconds(5_000))
        assert len(world.pods()) == replicas
    originals = list(world.replaces().values())
    assert len(originals) == len(set(originals))
