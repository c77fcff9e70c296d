"""The same scenario leads to the same commands in every world."""

from __future__ import annotations

import pytest

from fairlead.apiserver.kind import NAMESPACE, POD, RESOURCE_QUOTA, find_kind
from fairlead.apiserver.registry.deletion import Deletion
from fairlead.engine.compose import build_engine
from fairlead.engine.config import EngineConfig
from fairlead.engine.core.reporter import SilentReporter

REPLICA_SET = find_kind("ReplicaSet")
CONFIG_MAP = find_kind("ConfigMap")


def obj(api_version, kind, name, namespace="", **parts):
    meta = {"name": name, "uid": f"u-{kind}-{name}", **parts.pop("metadata", {})}
    meta |= {"namespace": namespace} if namespace else {}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **parts}


def cluster(*more):
    room = {"cpu": "8", "memory": "16Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True"}
    status = {"allocatable": room, "capacity": room, "conditions": [ready]}
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {
            "terminationGracePeriodSeconds": 3,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}],
        },
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return [
        obj("v1", "Node", "n", status=status),
        obj("v1", "Namespace", "shop"),
        obj("apps/v1", "ReplicaSet", "web", "shop", spec=spec),
        *more,
    ]


def make(world_class, *more):
    config = EngineConfig(seed=1, start=world_class.start)
    return world_class(build_engine(config, SilentReporter()), cluster(*more))


def names(world, kind, namespace="shop"):
    return [one["metadata"]["name"] for one in world.store.list(kind, namespace)]


def quota(hard):
    return obj("v1", "ResourceQuota", "q", "shop", spec={"hard": hard})


def used(world):
    return world.store.get(RESOURCE_QUOTA, "shop", "q")["status"]["used"]


def scale(replicas):
    return lambda store, now: store.patch(
        REPLICA_SET, "shop", "web", {"spec": {"replicas": replicas}}, now
    )


def test_the_pods_of_a_replica_set_run(full_world):
    world = make(full_world)
    world.run(10)
    pods = world.store.list(POD, "shop")
    assert [pod["status"]["phase"] for pod in pods] == ["Running", "Running"]


def test_a_deleted_namespace_is_removed_after_its_objects(full_world):
    """No object is created in it meanwhile; it waits for the grace period of its pods."""
    world = make(full_world, obj("v1", "ConfigMap", "c", "shop"))
    world.at(10, lambda store, now: store.delete(NAMESPACE, "", "shop", now, Deletion()))
    world.run(14)
    assert (len(names(world, POD)), names(world, CONFIG_MAP)) == (2, ["c"])
    world.run(16)
    assert len(names(world, POD)) == 2
    assert all("deletionTimestamp" in pod["metadata"] for pod in world.store.list(POD, "shop"))
    world.run(60)
    assert names(world, POD) == names(world, CONFIG_MAP) == names(world, REPLICA_SET) == []
    assert world.store.find(NAMESPACE, "", "shop") is None


def test_objects_that_finalizers_keep_are_reported(full_world):
    held = obj("v1", "ConfigMap", "c", "shop", metadata={"finalizers": ["x.io/hold"]})
    world = make(full_world, held)
    world.at(10, lambda store, now: store.delete(NAMESPACE, "", "shop", now, Deletion()))
    world.run(60)
    status = world.store.get(NAMESPACE, "", "shop")["status"]
    messages = {row["type"]: row["message"] for row in status["conditions"]}
    assert messages["NamespaceContentRemaining"].endswith("configmaps. has 1 resource instances")
    assert messages["NamespaceFinalizersRemaining"].endswith("x.io/hold in 1 resource instances")
    released = {"metadata": {"finalizers": None}}
    world.at(70, lambda store, now: store.patch(CONFIG_MAP, "shop", "c", released, now))
    world.run(120)
    assert world.store.find(NAMESPACE, "", "shop") is None


def test_dependents_are_deleted_with_their_owner(full_world):
    world = make(full_world)
    world.at(10, lambda store, now: store.delete(REPLICA_SET, "shop", "web", now, Deletion()))
    world.run(30)
    assert names(world, POD) == []


def test_an_owner_that_never_existed_does_not_count_as_deleted(full_world):
    """A dump rarely contains all owners."""
    owner = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "u-w"}
    orphan = obj("v1", "ConfigMap", "c", "shop", metadata={"ownerReferences": [owner]})
    world = make(full_world, orphan)
    world.run(30)
    assert names(world, CONFIG_MAP) == ["c"]


def test_a_quota_is_counted_and_enforced(full_world):
    world = make(full_world, quota({"pods": "3", "requests.cpu": "10"}))
    world.run(10)
    assert used(world) == {"pods": "2", "requests.cpu": "2"}
    world.at(20, scale(5))
    world.run(30)
    assert len(names(world, POD)) == 3
    assert used(world) == {"pods": "3", "requests.cpu": "3"}
    world.at(40, scale(1))
    world.run(60)
    assert used(world) == {"pods": "1", "requests.cpu": "1"}


@pytest.mark.parametrize("what", ["scale", "namespace", "quota"])
def test_the_same_scenario_leads_to_the_same_commands(what, request):
    """The order of commands at one instant may differ."""
    acts = {
        "scale": scale(4),
        "namespace": lambda store, now: store.delete(NAMESPACE, "", "shop", now, Deletion()),
        "quota": lambda store, now: store.create(quota({"pods": "1"}), now),
    }
    lines = []
    for world_class in request.getfixturevalue("full_worlds"):
        world = make(world_class)
        world.at(10, acts[what])
        world.run(60)
        lines.append(world.engine.lines)
    first, *others = lines
    assert first
    assert all(other == first for other in others)
