"""The order of the writes of the deployment controller, as a watch shows them."""

from __future__ import annotations

from copy import deepcopy

import pytest

from fairlead.engine.core.command import CreateObject, PatchObject, PatchStatus
from fairlead.engine.core.instant import seconds
from fairlead.engine.core.stimulus import FailureReason
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.environment import served_environment

REVISION = "deployment.kubernetes.io/revision"


@pytest.fixture
def world(observed_world):
    return observed_world


def images(world):
    return {
        key[2]: one["spec"]["template"]["spec"]["containers"][0]["image"]
        for key, one in world.objects.items()
        if key[0] == "ReplicaSet"
    }


def written(world, since=0):
    """Return the sizes, revisions and statuses in order, without pods and events."""
    names = images(world)
    return [summary for one in world.log[since:] if (summary := _written(one, names))]


def _written(one, names):
    match one:
        case CreateObject({"kind": "ReplicaSet"} as made):
            return (names[made["metadata"]["name"]], made["spec"]["replicas"])
        case PatchObject(target, patch) if target.kind == "ReplicaSet":
            number = patch.get("metadata", {}).get("annotations", {}).get(REVISION)
            return (names[target.name], patch["spec"]["replicas"] if not number else f"r{number}")
        case PatchObject(target, patch) if target.kind == "Deployment":
            return ("web", f"r{patch['metadata']['annotations'][REVISION]}")
        case PatchStatus(target) if target.kind == "Deployment":
            return ("web", _reasons(one.fields) or "numbers")
    return None


def _reasons(fields):
    rows = fields.get("conditions", ())
    return tuple(row["reason"] for row in rows if row["type"] == "Progressing")


def numbers(world, since):
    """Return (all pods, updated pods, available pods) of each status."""
    status, counts = {}, []
    for one in world.log[since:]:
        if isinstance(one, PatchStatus) and one.target.kind == "Deployment":
            status |= {key: number or 0 for key, number in dict(one.fields).items()}
            names = ("replicas", "updatedReplicas", "availableReplicas")
            counts.append(tuple(status.get(name, 0) for name in names))
    return counts


def test_each_step_of_a_rolling_update_is_written_to_the_status(world, build):
    """The old ReplicaSet shrinks, the status is written, then the new one grows."""
    one_more = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    world.create(build.deployment(2, strategy=one_more))
    since = len(world.log)
    world.set_image("web:2")
    steps = written(world, since)
    assert steps[:2] == [("web:2", 1), ("web", "r2")]
    sizes = [row for row in steps if row[0] != "web"]
    assert sizes == [("web:2", 1), ("web:1", 1), ("web:2", 2), ("web:1", 0)]
    after = steps[steps.index(("web:1", 1)) + 1 :]
    assert after[:2] == [("web", "numbers"), ("web:2", 2)]
    assert (3, 1, 3) in numbers(world, since)


def test_a_rollback_gets_its_revision_before_it_is_scaled(world, build):
    world.create(build.deployment(2))
    world.set_image("web:2")
    since = len(world.log)
    world.set_image("web:1")
    assert written(world, since)[:3] == [("web:1", "r3"), ("web", "r3"), ("web:1", 1)]


def test_a_pause_is_reported_first_and_alone(world, build):
    world.create(build.deployment(2))
    since = len(world.log)
    world.patch("Deployment", "web", {"spec": {"paused": True, "replicas": 3}})
    steps = written(world, since)
    assert steps[:2] == [("web", ("DeploymentPaused",)), ("web:1", 3)]
    since = len(world.log)
    world.patch("Deployment", "web", {"spec": {"paused": False}})
    assert written(world, since)[:2] == [
        ("web", ("DeploymentResumed",)),
        ("web", ("NewReplicaSetAvailable",)),
    ]


def test_scaling_does_not_update_the_progressing_condition(world, build):
    """The next status has the new numbers; the condition changes when the pods are ready."""
    world.create(build.deployment(2))
    since = len(world.log)
    world.patch("Deployment", "web", {"spec": {"replicas": 4}})
    assert written(world, since)[0] == ("web:1", 4)
    assert all(step[1] != ("ReplicaSetUpdated",) for step in written(world, since)[:2])


def test_unhealthy_pods_are_deleted_in_a_separate_step(world, build):
    """Two pods that never ran are deleted first, then one running pod that may be missing."""
    bounds = {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": 3}}
    world.create(build.deployment(4, strategy=bounds))
    for name in sorted(world.pods())[:2]:
        world.start(name, ready=False)
    world.settle()
    world.runs = False
    since = len(world.log)
    world.set_image("web:2")
    sizes = [row for row in written(world, since) if row[0] == "web:1"]
    notes = [event.note for event in world.events if "Scaled down" in event.note]
    assert sizes == [("web:1", 2), ("web:1", 1)]
    assert [note.partition(" from ")[2] for note in notes] == ["4 to 2", "2 to 1"]


def test_recreate_waits_until_old_pods_are_deleted(world, build):
    world.create(build.deployment(1, strategy={"type": "Recreate"}))
    since = len(world.log)
    world.set_image("web:2")
    (name,) = world.pods(alive=False)
    assert [row for row in written(world, since) if row[0] != "web"] == [("web:1", 0)]
    world.delete("Pod", name, grace=0)
    steps = [row for row in written(world, since) if row[0] != "web"]
    assert steps == [("web:1", 0), ("web:2", 1)]


def test_min_ready_seconds_are_copied_to_the_replica_set(world, build):
    world.create(build.deployment(1))
    world.patch("Deployment", "web", {"spec": {"minReadySeconds": 7}})
    (one,) = (one for key, one in world.objects.items() if key[0] == "ReplicaSet")
    assert one["spec"]["minReadySeconds"] == 7


def test_a_name_collision_is_counted(new_world, build):
    """Another name is tried, and the status counts the collision."""
    taken = []

    def refuse(command):
        is_one = isinstance(command, CreateObject) and command.manifest["kind"] == "ReplicaSet"
        if is_one and not taken:
            taken.append(command.target.name)
            return FailureReason.ALREADY_EXISTS
        return None

    world = new_world(Workloads(environment=served_environment()), refuse=refuse).load()
    world.create(build.deployment(1))
    (made,) = images(world)
    assert made != taken[0]
    assert world.get("Deployment", "web")["status"]["collisionCount"] == 1
    assert not [one for one in world.events if one.reason == "TemplateMismatch"]


def test_a_replica_set_with_a_changed_template_is_reported_once(new_world, build):
    """A webhook can change the template of new ReplicaSets; the Deployment then uses none."""
    created = []

    def refuse(command):
        if not isinstance(command, CreateObject) or command.manifest["kind"] != "ReplicaSet":
            return None
        if command.target.name in created:
            return FailureReason.ALREADY_EXISTS
        if len(created) < 3:  # the fourth one is not changed
            created.append(command.target.name)
            template = deepcopy(command.manifest["spec"]["template"])
            template["spec"]["containers"][0]["image"] = "changed"
            command.manifest["spec"]["template"] = template
        return None

    world = new_world(Workloads(environment=served_environment()), refuse=refuse).load()
    world.create(build.deployment(1))
    (event,) = (one for one in world.events if one.reason == "TemplateMismatch")
    assert (event.type, event.regarding.kind) == ("Warning", "Deployment")
    assert event.note.startswith(f"The new ReplicaSet {created[0]} does not have the template")
    assert world.get("Deployment", "web")["status"]["collisionCount"] == 3


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet"])
def test_a_refused_status_is_repeated_with_backoff(new_world, build, kind):
    """The delays grow, and no other write waits for it."""
    is_judged, tried = [True], []

    def refuse(command):
        if isinstance(command, PatchStatus) and command.target.kind == kind:
            tried.append(command)
            return FailureReason.FORBIDDEN if is_judged[0] else None
        return None

    controller = Workloads(environment=served_environment())
    world = new_world(controller, place=lambda pod: "n1", runs=True, refuse=refuse).load()
    world.create(build.deployment(2))
    assert len(world.pods()) == 2
    world.run(seconds(1))
    assert 3 <= len(tried) <= 30
    is_judged[0] = False
    world.run(seconds(60))
    assert world.get("Deployment", "web")["status"]["availableReplicas"] == 2


def test_a_scaling_that_another_client_reverts_is_not_repeated_for_ever(new_world, build):
    """A patch without effect is sent again only after another change."""
    controller = Workloads(environment=served_environment())
    world = new_world(controller, place=lambda pod: "n1", runs=True).load()
    world.create(build.deployment(2))
    (name,) = images(world)
    kept = []

    def attempt(command):
        if isinstance(command, PatchObject) and command.target.name == name:
            kept.append(command)
            return None
        return type(world)._attempt(world, command)

    world._attempt = attempt
    world.patch("Deployment", "web", {"spec": {"replicas": 5}})
    assert 1 <= len(kept) <= 2
