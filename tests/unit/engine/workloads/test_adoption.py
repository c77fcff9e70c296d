"""Adoption and release: labels and owner references decide which pods belong to an owner."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import CreateObject, PatchObject
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
    assert mismatches(world) == []


def mismatches(world):
    return [one for one in world.events if one.reason == "SelectorMismatch"]


def test_a_pod_that_was_created_with_other_labels_is_reported_once(new_world, build):
    """A webhook can change the labels of new pods; each pod is then released and replaced."""
    controllers = workload_controllers(WorkloadsConfig(serves_clients=True))
    fields = {"node": "", "phase": "Pending", "labels": {"app": "changed"}}
    pods = [build.pod(name, ("ReplicaSet", "web", "rs"), **fields) for name in ("web-1", "web-2")]
    world = new_world(*controllers).load(replica_set(build, replicas=2), *pods)
    assert owner_of(world, "Pod", "web-1") is None
    (event,) = mismatches(world)
    assert (event.type, event.regarding.name) == ("Warning", "web")
    assert "labels of the new pod web-1, so the pod does not count" in event.note


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


def created_pods(world):
    return [one for one in world.sent(CreateObject) if one.manifest["kind"] == "Pod"]


def without_controller(world, name):
    """Remove the owner references of a pod, as a user does."""
    world.patch("Pod", name, {"metadata": {"ownerReferences": None}})


def test_a_new_owner_creates_no_pod_in_place_of_an_orphan(world, build):
    world.create(build.pod("lonely"))
    world.create(replica_set(build))
    assert owner_of(world, "Pod", "lonely") == "web"
    assert created_pods(world) == []


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet"])
def test_a_pod_without_its_controller_is_adopted_again(world, build, kind):
    world.create(build.node("n1"))
    world.create(build.owned(kind, "web", 1, uid="owner"))
    (name,) = world.pods()
    without_controller(world, name)
    assert owner_of(world, "Pod", name) == "web"
    assert list(world.pods()) == [name]
    assert len(created_pods(world)) == 1


TRACKING = "batch.kubernetes.io/job-tracking"


def job(build, uid="job", name="sum", **fields):
    fields = {"parallelism": 1, "completions": 1, **fields}
    return build.owned("Job", name, uid=uid, version="batch/v1", **fields)


def finalizers(world, name):
    return world.get("Pod", name)["metadata"].get("finalizers") or []


def failed(world, name="sum"):
    return world.get("Job", name)["status"].get("failed", 0)


def test_a_job_adopts_a_pod_again_that_lost_its_controller(world, build):
    """The Job does not count the pod as failed, and counts it when it ends."""
    world.create(job(build))
    (name,) = world.pods()
    without_controller(world, name)
    world.run(seconds(5))
    assert owner_of(world, "Pod", name) == "sum"
    assert finalizers(world, name) == [TRACKING]
    assert len(created_pods(world)) == 1
    assert failed(world) == 0
    world.patch_status("Pod", name, {"phase": "Succeeded"})
    world.run(seconds(5))
    assert world.get("Job", "sum")["status"]["succeeded"] == 1
    assert finalizers(world, name) == []


@pytest.mark.parametrize("owners", [{}, {"ownerReferences": None}], ids=["label", "both"])
def test_a_job_releases_a_pod_that_it_no_longer_selects(world, build, owners):
    """Another pod replaces the released pod at once, and no failure is counted."""
    world.create(job(build))
    (name,) = world.pods()
    world.patch("Pod", name, {"metadata": {"labels": {"app": "quarantine"}, **owners}})
    assert owner_of(world, "Pod", name) is None
    assert finalizers(world, name) == []
    assert len(world.pods()) == 2
    world.run(seconds(5))
    assert failed(world) == 0
    assert world.get("Job", "sum")["status"]["active"] == 1


def test_a_recreated_job_adopts_the_pods_that_its_selector_matches(world, build):
    world.create(job(build, parallelism=2, completions=2))
    before = set(world.pods())
    orphan(world, "Job", "sum")
    world.create(job(build, uid="again", name="again", parallelism=2, completions=2))
    world.run(seconds(5))
    assert set(world.pods()) == before
    assert {owner_of(world, "Pod", name) for name in before} == {"again"}
    assert [finalizers(world, name) for name in before] == [[TRACKING], [TRACKING]]
    assert len(created_pods(world)) == 2


def test_a_new_job_counts_the_finished_pod_that_it_adopts(world, build):
    world.create(build.pod("done", phase="Succeeded"))
    world.create(job(build, completions=2))
    world.run(seconds(5))
    assert owner_of(world, "Pod", "done") == "sum"
    assert world.get("Job", "sum")["status"]["succeeded"] == 1
    assert finalizers(world, "done") == []


@pytest.mark.parametrize(
    "other",
    [
        {"managedBy": "example.com/other"},
        {"status": {"conditions": [{"type": "Complete", "status": "True"}]}},
    ],
    ids=["managed by others", "finished"],
)
def test_jobs_that_adopt_no_pods(world, build, other):
    one = job(build, **{key: value for key, value in other.items() if key != "status"})
    world.create(one | {key: value for key, value in other.items() if key == "status"})
    world.create(build.pod("lonely"))
    assert owner_of(world, "Pod", "lonely") is None


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job"])
@pytest.mark.parametrize(
    "selector",
    [None, {}, {"matchLabels": {"app": "other"}}],
    ids=["no selector", "empty", "another label"],
)
def test_an_owner_that_does_not_select_its_own_pods_keeps_them(world, build, kind, selector):
    """An API server accepts no such owner, but a manifest may contain one."""
    world.create(build.node("n1"))
    one = job(build) if kind == "Job" else build.owned(kind, "web", 1, uid="owner")
    one["spec"]["selector"] = selector
    world.create(build.pod("lonely"))
    world.create(one)
    world.run(seconds(5))
    assert owner_of(world, "Pod", "lonely") is None
    assert len(created_pods(world)) == 1
    assert len(world.pods()) == 2
