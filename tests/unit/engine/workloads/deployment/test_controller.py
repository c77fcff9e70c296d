"""Rollouts as shown by `kubectl rollout`: status, revisions, history, pauses and deadlines."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.engine.workloads.conftest import World

from fairlead.engine.core.command import CreateObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.adoption import Adoption
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.environment import served_environment

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def world(observed_world):
    return observed_world


def status(world):
    return world.get("Deployment", "web")["status"]


def condition(world, kind):
    found = [one for one in status(world)["conditions"] if one["type"] == kind]
    return found[0] if found else None


def replica_sets(world):
    """Return the revision by image."""
    return {
        one["spec"]["template"]["spec"]["containers"][0]["image"]: one
        for key, one in world.objects.items()
        if key[0] == "ReplicaSet"
    }


def sizes(world):
    return {image: one["spec"]["replicas"] for image, one in replica_sets(world).items()}


def revisions(world):
    return {
        image: one["metadata"]["annotations"][REVISION]
        for image, one in replica_sets(world).items()
    }


def test_a_new_deployment_gets_a_progressing_condition_when_complete(world, build):
    world.create(build.deployment(3))
    found = status(world)
    assert {key: found[key] for key in found if key.endswith("eplicas")} == {
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
    }
    assert condition(world, "Available")["reason"] == "MinimumReplicasAvailable"
    progress = condition(world, "Progressing")
    assert (progress["status"], progress["reason"]) == ("True", "NewReplicaSetAvailable")
    (one,) = replica_sets(world).values()
    assert progress["message"] == (
        f'ReplicaSet "{one["metadata"]["name"]}" has successfully progressed.'
    )
    assert one["status"]["availableReplicas"] == 3
    assert [event.note for event in world.events if event.regarding.kind == "Deployment"] == [
        f"Scaled up replica set {one['metadata']['name']} from 0 to 3"
    ]


def sizes_by_name(world):
    return {key[2]: one["spec"]["replicas"] for key, one in world.objects.items()
            if key[0] == "ReplicaSet"}  # fmt: skip


def test_a_released_replica_set_is_replaced(world, build):
    world.create(build.deployment(2))
    [name] = sizes_by_name(world)
    world.patch("ReplicaSet", name, {"metadata": {"ownerReferences": None}})
    world.patch("Deployment", "web", {"spec": {"replicas": 3}})
    found = sizes_by_name(world)
    assert (found.pop(name), list(found.values())) == (2, [3])


def test_a_write_to_a_released_replica_set_does_not_block_the_rollout(build):
    """At the start, the ReplicaSet is released and gets an annotation at the same instant."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "dep"}
    old = build.owned("ReplicaSet", "web-1", 2, uid="rs")
    old["metadata"] |= {
        "labels": {"app": "other"},
        "ownerReferences": [{**owner, "controller": True}],
    }
    controllers = Adoption(), Workloads(environment=served_environment())
    world = World(*controllers, place=lambda pod: "n1", runs=True).load(build.deployment(2), old)
    found = sizes_by_name(world)
    assert (found.pop("web-1"), list(found.values())) == (2, [2])


def test_pods_that_never_become_ready_block_a_rollout(world, build):
    """At most two of the four old pods are deleted, so that the others stay available."""
    world.create(build.deployment(4))
    world.runs = False
    world.set_image("web:2")
    assert sizes(world) == {"web:1": 3, "web:2": 2}
    assert status(world)["updatedReplicas"] == 2
    assert status(world)["unavailableReplicas"] == 2
    world.run(seconds(602))
    assert condition(world, "Progressing")["reason"] == "ProgressDeadlineExceeded"
    assert condition(world, "Available")["status"] == "True"
    for name in list(world.pods()):
        world.start(name)
    world.runs = True
    world.settle()
    assert sizes(world) == {"web:1": 0, "web:2": 4}
    assert condition(world, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_a_rollback_makes_the_old_replica_set_the_newest_revision(world, build):
    world.create(build.deployment())
    world.set_image("web:2")
    assert revisions(world) == {"web:1": "1", "web:2": "2"}
    world.set_image("web:1")
    assert revisions(world) == {"web:1": "3", "web:2": "2"}
    assert sizes(world) == {"web:1": 2, "web:2": 0}
    old = replica_sets(world)["web:1"]["metadata"]["annotations"]
    assert old["deployment.kubernetes.io/revision-history"] == "1"
    assert world.get("Deployment", "web")["metadata"]["annotations"][REVISION] == "3"


def test_the_cause_of_a_change_is_kept_with_its_revision(world, build):
    cause = {"kubernetes.io/change-cause": "kubectl set image"}
    kept = "kubectl.kubernetes.io/last-applied-configuration"
    one = build.deployment()
    one["metadata"]["annotations"] = cause | {kept: "{}"}
    world.create(one)
    (made,) = replica_sets(world).values()
    assert made["metadata"]["annotations"]["kubernetes.io/change-cause"] == "kubectl set image"
    assert kept not in made["metadata"]["annotations"]


def test_revisions_above_the_history_limit_are_deleted(world, build):
    world.create(build.deployment(revisionHistoryLimit=1))
    for number in (2, 3, 4):
        world.set_image(f"web:{number}")
    assert sizes(world) == {"web:3": 0, "web:4": 2}


def test_a_paused_rollout_does_not_continue(world, build):
    """It still scales; a changed template is rolled out after the pause."""
    world.create(build.deployment())
    world.patch("Deployment", "web", {"spec": {"paused": True}})
    assert condition(world, "Progressing")["reason"] == "DeploymentPaused"
    world.set_image("web:2")
    world.patch("Deployment", "web", {"spec": {"replicas": 3}})
    assert sizes(world) == {"web:1": 3}
    world.patch("Deployment", "web", {"spec": {"paused": False}})
    assert sizes(world) == {"web:1": 0, "web:2": 3}
    assert condition(world, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_recreate_runs_only_one_version_at_a_time(world, build):
    """The new ReplicaSet is created after the last old pod has ended."""
    world.create(build.deployment(strategy={"type": "Recreate"}))
    world.set_image("web:2")
    assert sizes(world) == {"web:1": 0}
    for name in sorted(world.pods(alive=False)):
        assert sizes(world) == {"web:1": 0}
        world.delete("Pod", name, grace=0)
    assert sizes(world) == {"web:1": 0, "web:2": 2}


def test_pods_are_available_after_min_ready_seconds(world, build):
    world.create(build.deployment(2, minReadySeconds=10))
    assert status(world)["readyReplicas"] == 2
    assert "availableReplicas" not in status(world)
    world.run(seconds(10))
    assert status(world)["availableReplicas"] == 2
    assert condition(world, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_scaling_during_a_rollout_is_proportional(world, build):
    world.create(build.deployment(8))
    world.runs = False
    world.set_image("web:2")
    before = sizes(world)
    world.patch("Deployment", "web", {"spec": {"replicas": 16}})
    after = sizes(world)
    assert before == {"web:1": 6, "web:2": 4}
    assert after == {"web:1": 12, "web:2": 8}


def test_scaling_precedes_the_rollout_of_a_new_template(world, build):
    """The old ReplicaSet grows first; the new one may use the surge."""
    world.create(build.deployment(2))
    world.runs = False
    changed = {"spec": {"replicas": 3, "template": build.template("web:2")}}
    world.patch("Deployment", "web", changed)
    assert sizes(world) == {"web:1": 3, "web:2": 1}


def test_the_status_reports_a_new_replica_set_before_its_pods(world, build):
    """The first status has the new ReplicaSet, the second its zero pods, the third its pods."""
    world.create(build.deployment(2))
    statuses = [
        one.patch["status"] if isinstance(one, PatchObject) else one.fields
        for one in world.log
        if isinstance(one, PatchObject | PatchStatus) and one.target.kind == "Deployment"
    ]
    reasons = [[row["reason"] for row in one.get("conditions", ())] for one in statuses[:3]]
    assert reasons == [
        ["NewReplicaSetCreated"],
        ["NewReplicaSetCreated", "MinimumReplicasUnavailable"],
        ["MinimumReplicasUnavailable", "ReplicaSetUpdated"],
    ]
    assert statuses[1]["unavailableReplicas"] == statuses[2]["replicas"] == 2


def test_a_refused_replica_set_is_reported(new_world, build):
    controller = Workloads(environment=served_environment())
    world = new_world(controller, refuse=_no_replica_sets).load()
    world.create(build.deployment())
    world.settle()
    progress = condition(world, "Progressing")
    assert (progress["status"], progress["reason"]) == ("False", "ReplicaSetCreateError")
    notes = [event.note for event in world.events if event.reason == "ReplicaSetCreateError"]
    assert notes[0] == progress["message"]
    assert notes[0].startswith('Failed to create new replica set "web-')


def _no_replica_sets(command):
    is_one = isinstance(command, CreateObject) and command.manifest["kind"] == "ReplicaSet"
    return FailureReason.FORBIDDEN if is_one else None


def test_refused_pods_are_reported_in_both_statuses(new_world, build):
    def no_pods(command):
        is_one = isinstance(command, CreateObject) and command.manifest["kind"] == "Pod"
        return FailureReason.FORBIDDEN if is_one else None

    world = new_world(Workloads(environment=served_environment()), refuse=no_pods).load()
    world.create(build.deployment())
    (one,) = replica_sets(world).values()
    assert one["status"]["conditions"][0]["reason"] == "FailedCreate"
    assert condition(world, "ReplicaFailure")["message"] == "refused by the test"


def test_an_unchanged_status_is_not_written_again(world, build):
    world.create(build.deployment(3))
    before = len(world.sent(PatchStatus))
    world.patch("Deployment", "web", {"metadata": {"labels": {"a": "b"}}})
    world.run(seconds(3600))
    assert len(world.sent(PatchStatus)) == before


def test_old_pods_on_nodes_with_new_pods_are_deleted_first(new_world, build):
    """The node with two pods of the Deployment loses one of them."""
    nodes = iter(["n1", "n2", "n1", "n1", "n1"])
    controller = Workloads(environment=served_environment())
    world = new_world(controller, place=lambda pod: next(nodes), runs=True).load()
    bounds = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world.create(build.deployment(2, strategy=bounds))
    before = {pod["spec"]["nodeName"]: name for name, pod in world.pods().items()}
    world.set_image("web:2")
    deleted = [event.note for event in world.events if event.reason == "SuccessfulDelete"]
    assert deleted == [f"Deleted pod: {before[node]}" for node in ("n1", "n2")]


@given(
    replicas=st.integers(1, 6),
    surge=st.integers(0, 3),
    unavailable=st.integers(0, 3),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("start"), st.integers(0, 9)),
            st.tuples(st.just("image"), st.integers(1, 3)),
            st.tuples(st.just("lose"), st.integers(0, 9)),
        ),
        max_size=25,
    ),
)
@settings(deadline=None)
def test_a_rollout_never_violates_its_bounds(new_world, build, replicas, surge, unavailable, steps):
    """It never exceeds the maximum number of pods, nor deletes an available pod that is needed."""
    bounds = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    unavailable = unavailable if surge or unavailable else 1
    world = new_world(Workloads(), place=lambda pod: "n1", runs=True).load()
    world.create(build.deployment(replicas, strategy=bounds))
    world.runs = False
    image = "web:1"
    for what, number in steps:
        names = sorted(world.pods())
        available = _ready(world)
        if what == "start" and names:
            world.start(names[number % len(names)])
            world.settle()
        elif what == "lose" and names:
            name = names[number % len(names)]
            available -= name in _ready_names(world)
            world.delete("Pod", name, grace=0)
        elif what == "image":
            image = f"web:{number}"
            world.set_image(image)
        assert len(world.pods()) <= replicas + surge
        assert _ready(world) >= min(available, replicas - min(unavailable, replicas))
    for _ in range(40):
        for name in sorted(world.pods()):
            world.start(name)
        world.settle()
    images = [pod["spec"]["containers"][0]["image"] for pod in world.pods().values()]
    assert images == [image] * replicas


def _ready_names(world):
    return [
        name
        for name, pod in world.pods().items()
        for one in pod.get("status", {}).get("conditions", ())
        if (one["type"], one["status"]) == ("Ready", "True")
    ]


def _ready(world):
    return len(_ready_names(world))
