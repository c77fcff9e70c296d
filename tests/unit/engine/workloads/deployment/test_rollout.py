"""Deployments: which ReplicaSets they own, and how many replicas each has."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode
from fairlead.engine.core.command import CreateObject, DeleteObject, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import (
    CommandSucceeded,
    FailureReason,
    ObjectChanged,
    ObjectsLoaded,
)
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.deletion.garbage_collector import GarbageCollector

HASH = "54df9554fd"
OLD = ("ReplicaSet", f"web-{HASH}", "rs")
LABELS = {"app": "web", "pod-template-hash": HASH}


@pytest.fixture
def world(new_world):
    return new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1", runs=True)


def deployment(build, replicas=2, **fields):
    return build.owned("Deployment", "web", replicas, uid="dep", **fields)


def owned_set(build, replicas=2, *, uid="rs", digest=HASH, template=None, revision=None):
    labels = {"app": "web", "pod-template-hash": digest}
    made = build.owned("ReplicaSet", f"web-{digest}", replicas, uid=uid)
    made["spec"]["template"] = (template or build.template()) | {"metadata": {"labels": labels}}
    reference = {"kind": "Deployment", "name": "web", "uid": "dep", "controller": True}
    made["metadata"] |= {"ownerReferences": [reference], "labels": labels}
    if revision:
        made["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": revision}
    return made


def pods_of(build, count, owner=OLD, **fields):
    return [
        build.pod(f"{owner[1]}-{place}", owner, labels=LABELS, **fields) for place in range(count)
    ]


def sizes(world):
    return {
        key[2]: one["spec"]["replicas"]
        for key, one in world.objects.items()
        if key[0] == "ReplicaSet"
    }


def test_a_new_deployment_creates_its_replica_set(world, build):
    """The hash is in its name, labels, selector and pods."""
    world.load()
    world.create(deployment(build, 3))
    ((name, replicas),) = sizes(world).items()
    made = world.get("ReplicaSet", name)
    digest = name.removeprefix("web-")
    labels = {"app": "web", "pod-template-hash": digest}
    assert replicas == 3
    assert made["metadata"]["labels"] == labels
    assert made["spec"]["selector"] == {"matchLabels": labels}
    assert made["metadata"]["ownerReferences"] == [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "name": "web",
            "uid": "dep",
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]
    pods = world.pods().values()
    assert [pod["metadata"]["labels"] for pod in pods] == [labels] * 3


def test_a_loaded_deployment_keeps_its_replica_set(world, build):
    """The stored template contains defaults that the manifest omits."""
    template = build.template(dnsPolicy="ClusterFirst", restartPolicy="Always")
    world.load(deployment(build), owned_set(build, template=template), *pods_of(build, 2))
    assert world.log == []


@pytest.mark.parametrize("replicas", [0, 1, 5])
def test_scaling_scales_the_replica_set(world, build, replicas):
    world.load(deployment(build), owned_set(build), *pods_of(build, 2))
    world.patch("Deployment", "web", {"spec": {"replicas": replicas}})
    assert sizes(world) == {f"web-{HASH}": replicas}
    assert len(world.pods()) == replicas
    assert len(world.sent(PatchObject)) == 1


def test_a_changed_template_in_a_loaded_deployment_is_rolled_out(world, build):
    world.load(deployment(build, 4), owned_set(build, 2), *pods_of(build, 2))
    assert sizes(world) == {f"web-{HASH}": 4}
    assert len(world.pods()) == 4


def test_another_template_moves_all_replicas(world, build):
    world.load(deployment(build), owned_set(build), *pods_of(build, 2))
    world.patch("Deployment", "web", {"spec": {"template": build.template("web:2")}})
    old, new = sorted(sizes(world).items(), key=lambda item: item[1])
    assert (old, new[1]) == ((f"web-{HASH}", 0), 2)
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods().values()} == {"web:2"}
    assert len(world.pods()) == 2


def test_a_return_to_the_old_template_uses_the_old_replica_set(world, build):
    world.load(deployment(build), owned_set(build), *pods_of(build, 2))
    world.patch("Deployment", "web", {"spec": {"template": build.template("web:2")}})
    world.patch("Deployment", "web", {"spec": {"template": build.template("web:1")}})
    assert sizes(world)[f"web-{HASH}"] == 2
    assert sorted(sizes(world).values()) == [0, 2]


def test_the_revision_identifies_the_replica_set_of_a_loaded_deployment(world, build):
    """The stored template was changed by a webhook, but is not rolled out again."""
    one = deployment(build)
    one["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "7"}
    stored = build.template(priorityClassName="added-by-a-webhook")
    world.load(one, owned_set(build, template=stored, revision="7"), *pods_of(build, 2))
    assert world.log == []
    world.patch("Deployment", "web", {"spec": {"replicas": 3}})
    assert sizes(world) == {f"web-{HASH}": 3}


def test_a_deleted_replica_set_is_created_again(world, build):
    world.load(deployment(build), owned_set(build), *pods_of(build, 2))
    world.delete("ReplicaSet", f"web-{HASH}")
    assert len(world.pods()) == 2
    assert f"web-{HASH}" not in sizes(world)


def test_replica_sets_and_pods_of_a_deleted_deployment_are_deleted(world, build):
    world.load(deployment(build), owned_set(build), *pods_of(build, 2))
    world.delete("Deployment", "web")
    assert sizes(world) == {}
    assert world.pods() == {}


def test_a_taken_replica_set_name_counts_as_a_collision(world, build):
    world.load()
    world.create(deployment(build, 1))
    ((name, _),) = sizes(world).items()
    other = type(world)(Workloads())
    foreign = build.owned("ReplicaSet", name, 0, uid="foreign")
    other.load(foreign, deployment(build, 1))
    assert len(sizes(other)) == 2
    assert len(other.pods()) == 1


def test_a_refused_creation_of_a_replica_set_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.FORBIDDEN if down[0] and isinstance(one, CreateObject) else None
    )
    world.load(deployment(build, 1))
    assert world.events[0].regarding.kind == "Deployment"
    down[0] = False
    world.run(seconds(1))
    assert len(world.pods()) == 1


def test_a_refused_scaling_is_repeated(world, build):
    down = [True]
    world.refuse = lambda one: (
        FailureReason.CONFLICT if down[0] and isinstance(one, PatchObject) else None
    )
    world.load(deployment(build, 3), owned_set(build, 2), *pods_of(build, 2))
    assert len(world.pods()) == 2
    down[0] = False
    world.run(seconds(1))
    assert len(world.pods()) == 3


def test_a_scaling_in_progress_is_not_requested_again(build):
    controller = Workloads()
    snapshot = [deployment(build), owned_set(build), *pods_of(build, 2)]
    controller.handle(ObjectsLoaded([decode(one) for one in snapshot]), 0)

    def react(stimulus):
        return controller.handle(stimulus, 0) + controller.handle_deadline(0)

    (patch,) = react(ObjectChanged(decode(deployment(build, 5))))
    assert patch.patch["spec"] == {"replicas": 5}
    assert react(ObjectChanged(decode(deployment(build, 5)))) == []
    assert react(ObjectChanged(decode(deployment(build, 6)))) == []  # the patch is in flight
    (again,) = react(CommandSucceeded(patch))
    assert again.patch["spec"] == {"replicas": 6}


# --- a dump without the ReplicaSets between ------------------------------------------------------


def test_pods_of_an_unknown_replica_set_belong_to_the_deployment(world, build):
    world.load(deployment(build), *pods_of(build, 2))
    assert world.log == []


def test_an_implied_replica_set_scales_with_its_deployment(world, build):
    """Its new pods have the same owner and hash as the others."""
    world.load(deployment(build), *pods_of(build, 2))
    world.patch("Deployment", "web", {"spec": {"replicas": 3}})
    (made,) = [command.manifest for command in world.sent(CreateObject)]
    assert made["kind"] == "Pod"
    assert made["metadata"]["labels"] == LABELS
    assert made["metadata"]["ownerReferences"][0]["uid"] == "rs"
    world.patch("Deployment", "web", {"spec": {"replicas": 1}})
    assert len(world.pods()) == 1
    assert sizes(world) == {}


def test_an_implied_replica_set_replaces_deleted_pods(world, build):
    world.load(deployment(build), *pods_of(build, 2))
    world.delete("Pod", f"web-{HASH}-0")
    assert list(world.replaces().values()) == [f"web-{HASH}-0"]
    assert len(world.pods()) == 2


def test_the_newest_of_several_implied_replica_sets_is_current(world, build):
    other = ("ReplicaSet", "web-6d58cd5f89", "rs2")
    labels = {"app": "web", "pod-template-hash": "6d58cd5f89"}
    newer = build.pod("n", other, labels=labels, meta={"creationTimestamp": "2030-01-01T00:00:00Z"})
    world.load(deployment(build, 1), *pods_of(build, 1), newer)
    assert set(world.pods()) == {"n"}


def test_another_template_replaces_an_implied_replica_set(world, build):
    world.load(deployment(build), *pods_of(build, 2))
    world.patch("Deployment", "web", {"spec": {"template": build.template("web:2")}})
    assert list(sizes(world).values()) == [2]
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods().values()} == {"web:2"}


def test_a_deployment_that_is_created_later_adopts_its_pods(world, build):
    """The dump contains only nodes and pods; the Deployment has another number of replicas."""
    world.load(*pods_of(build, 2))
    world.create(deployment(build, 3))
    assert len(world.pods()) == 3
    assert sizes(world) == {}


def test_a_deployment_created_later_with_another_template_replaces_pods(world, build):
    world.load(*pods_of(build, 2))
    world.create(deployment(build, 2, template=build.template("web:2")))
    assert {pod["spec"]["containers"][0]["image"] for pod in world.pods().values()} == {"web:2"}


def test_implied_replica_sets_of_a_deleted_deployment_are_deleted(world, build):
    world.load(deployment(build), *pods_of(build, 2))
    world.delete("Deployment", "web")
    assert world.pods() == {}
    assert len(world.sent(DeleteObject)) == 2


def test_a_replica_set_of_another_owner_is_not_implied(world, build):
    """The name matches, but the selector does not."""
    foreign = build.pod("x", OLD, labels=LABELS | {"app": "other"})
    world.load(deployment(build, 1), foreign)
    assert len(world.pods()) == 2


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("replicas"), st.integers(0, 4)),
            st.tuples(st.just("image"), st.integers(1, 3)),
            st.tuples(st.just("lose"), st.integers(0, 9)),
        ),
        max_size=10,
    ),
    st.booleans(),
)
def test_settled_means_all_replicas_of_the_last_template(new_world, build, steps, knows_its_set):
    world = new_world(Workloads(), GarbageCollector(), place=lambda pod: "n1", runs=True)
    between = [owned_set(build)] if knows_its_set else []
    world.load(deployment(build), *between, *pods_of(build, 2))
    replicas, image = 2, "web:1"
    for what, number in steps:
        if what == "replicas":
            replicas = number
            world.patch("Deployment", "web", {"spec": {"replicas": replicas}})
        elif what == "image":
            image = f"web:{number}"
            world.patch("Deployment", "web", {"spec": {"template": build.template(image)}})
        elif world.pods():
            world.delete("Pod", sorted(world.pods())[number % len(world.pods())])
        images = [pod["spec"]["containers"][0]["image"] for pod in world.pods().values()]
        assert images == [image] * replicas
