"""Adoption and release: labels and owner references decide which pods belong to an owner."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.compose import workload_controllers
from fairlead.engine.workloads.config import WorkloadsConfig


@pytest.fixture
def world(new_world):
    controllers = workload_controllers(WorkloadsConfig(serves_clients=True))
    return new_world(*controllers, place=lambda pod: "n1", runs=True).load()


def owner_of(world, kind, name):
    references = world.get(kind, name)["metadata"].get("ownerReferences", [])
    return references[0]["name"] if references else None


def replica_set(build, replicas=1, **fields):
    return build.owned("ReplicaSet", "web", replicas, uid="rs", **fields)


def test_an_orphan_is_adopted_instead_of_creating_a_pod(world, build):
    world.create(build.pod("lonely"))
    world.create(replica_set(build))
    assert owner_of(world, "Pod", "lonely") == "web"
    assert len(world.pods()) == 1


def test_a_refused_adoption_is_repeated(world, build):
    world.create(build.pod("lonely"))
    refusals = [FailureReason.INTERNAL_ERROR]
    world.refuse = lambda one: refusals.pop() if isinstance(one, PatchObject) and refusals else None
    world.create(replica_set(build))
    assert owner_of(world, "Pod", "lonely") is None
    world.run(seconds(2))
    assert owner_of(world, "Pod", "lonely") == "web"


def test_an_orphan_created_later_is_adopted_and_a_surplus_pod_deleted(world, build):
    world.create(replica_set(build))
    world.create(build.pod("lonely"))
    assert len(world.pods()) == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"labels": {"app": "db"}},
        {"phase": "Failed"},
        {"meta": {"annotations": {"kubernetes.io/config.source": "file"}}},
    ],
    ids=["not selected", "finished", "static"],
)
def test_pods_that_are_not_adopted(world, build, fields):
    world.create(build.pod("lonely", **fields))
    world.create(replica_set(build))
    assert owner_of(world, "Pod", "lonely") is None


def test_a_pod_with_changed_labels_is_released(world, build):
    """Another pod replaces it, and the released pod stays for inspection."""
    world.create(replica_set(build))
    (name,) = world.pods()
    world.patch("Pod", name, {"metadata": {"labels": {"app": "quarantine"}}})
    assert owner_of(world, "Pod", name) is None
    assert len(world.pods()) == 2
    assert world.replaces() == {}


def test_a_stateful_set_adopts_only_pods_with_its_names(world, build):
    world.create(build.pod("db-0"))
    world.create(build.pod("other"))
    world.create(build.owned("StatefulSet", "db", 1, uid="sts"))
    assert owner_of(world, "Pod", "db-0") == "db"
    assert owner_of(world, "Pod", "other") is None


def test_a_recreated_deployment_adopts_its_replica_set(world, build):
    world.create(build.owned("Deployment", "web", 2, uid="dep"))
    pods = set(world.pods())
    orphaning = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["orphan"]}
    world.patch("Deployment", "web", {"metadata": orphaning})
    world.delete("Deployment", "web")
    assert set(world.pods()) == pods
    world.create(build.owned("Deployment", "web", 2, uid="dep2"))
    (one,) = [one for key, one in world.objects.items() if key[0] == "ReplicaSet"]
    assert one["metadata"]["ownerReferences"][0]["uid"] == "dep2"
    assert set(world.pods()) == pods
    assert world.get("Deployment", "web")["status"]["readyReplicas"] == 2


def orphan(world, kind, name):
    """Delete the object as `kubectl delete --cascade=orphan` does."""
    orphaning = {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["orphan"]}
    world.patch(kind, name, {"metadata": orphaning})
    world.delete(kind, name)


def revisions_of(world):
    """Return {uid of the owner: numbers of its ControllerRevisions}."""
    found = {}
    for key, one in world.objects.items():
        if key[0] == "ControllerRevision":
            (owner,) = one["metadata"]["ownerReferences"]
            found.setdefault(owner["uid"], set()).add(one["revision"])
    return found


REVISED = pytest.mark.parametrize(
    ("kind", "name"),
    [("StatefulSet", "db"), ("DaemonSet", "db"), ("DaemonSet", "renamed")],
)


@REVISED
def test_a_recreated_owner_keeps_pods_of_the_same_template(world, build, kind, name):
    """It adopts their revision. So a StatefulSet can get larger claims without a rollout."""
    world.create(build.node("n1"))
    world.create(build.owned(kind, "db", 1, uid="before"))
    pods = {one["metadata"]["uid"] for one in world.pods().values()}
    orphan(world, kind, "db")
    world.create(build.owned(kind, name, 1, uid="after"))
    world.run(seconds(60))
    assert {one["metadata"]["uid"] for one in world.pods().values()} == pods
    assert revisions_of(world) == {"after": {1}}
    status = world.get(kind, name)["status"]
    assert status.get("updatedReplicas", status.get("updatedNumberScheduled")) == 1


@REVISED
def test_a_recreated_owner_replaces_pods_of_another_template(world, build, kind, name):
    world.create(build.node("n1"))
    world.create(build.owned(kind, "db", 1, uid="before"))
    (outdated,) = world.pods()
    orphan(world, kind, "db")
    after = build.owned(kind, name, 1, uid="after")
    after["spec"]["template"] = build.template("web:2")
    world.create(after)
    assert world.pods() == {}
    world.delete("Pod", outdated, grace=0)
    (pod,) = world.pods().values()
    assert pod["spec"]["containers"][0]["image"] == "web:2"
    assert revisions_of(world) == {"after": {1, 2}}


def test_a_revision_that_is_adopted_late_is_older_than_the_update(world, build):
    """The DaemonSet is renamed while the garbage collector still orphans the revisions."""
    world.create(build.node("n1"))
    after = build.owned("DaemonSet", "renamed", 1, uid="after")
    after["spec"]["template"] = build.template("web:2")
    world.create(after)
    late = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {"name": "db-abc", "namespace": "ns", "labels": {"app": "web"}},
        "data": {"spec": {"template": {**build.template(), "$patch": "replace"}}},
        "revision": 1,
    }
    world.create(late)
    assert revisions_of(world) == {"after": {1, 2}}
    assert world.get("ControllerRevision", "db-abc")["revision"] == 1


def test_a_terminating_owner_adopts_no_pods(world, build):
    one = replica_set(build)
    one["metadata"] |= {"deletionTimestamp": "2027-01-01T00:00:00Z", "finalizers": ["x/y"]}
    world.create(one)
    world.create(build.pod("lonely"))
    assert owner_of(world, "Pod", "lonely") is None


def test_no_adoption_is_requested_twice(world, build):
    world.create(build.pod("lonely"))
    world.create(replica_set(build))
    world.patch("Pod", "lonely", {"metadata": {"labels": {"x": "y"}}})
    assert len([one for one in world.sent(PatchObject) if one.target.kind == "Pod"]) == 1
