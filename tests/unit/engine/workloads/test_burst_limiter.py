"""BurstLimiter: writes that are undone immediately are not repeated endlessly at one instant."""

from __future__ import annotations

from fairlead.engine.core.command import CreateObject, PatchObject
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.adoption import Adoption
from fairlead.engine.workloads.controller import Workloads
from fairlead.engine.workloads.environment import served_environment
from fairlead.engine.workloads.work_queue import BURST_MAX, BurstLimiter

REVISION = "deployment.kubernetes.io/revision"


def test_writes_are_counted_by_key_and_instant():
    burst_limiter = BurstLimiter()
    burst_limiter.record("a", 1, 3)
    assert burst_limiter.is_exceeded("a", 1, 3)
    assert not burst_limiter.is_exceeded("a", 1, 4)
    assert not burst_limiter.is_exceeded("b", 1, 1)
    assert not burst_limiter.is_exceeded("a", 2, 3)
    burst_limiter.record("a", 2)
    assert burst_limiter.is_exceeded("a", 2, 1)
    assert not burst_limiter.is_exceeded("a", 2, 2)


def test_a_revision_that_another_client_changes_is_not_written_for_ever(new_world, build):
    """The write is repeated a second later."""
    world = new_world(Workloads(environment=served_environment())).load()
    sent = []

    def attempt(command):
        reason = type(world)._attempt(world, command)
        if isinstance(command, PatchObject) and command.target.kind == "ReplicaSet":
            sent.append(world.now)
            held = world.objects["ReplicaSet", "ns", command.target.name]
            held["metadata"]["annotations"] = {
                **held["metadata"]["annotations"],
                REVISION: "7",
            }
            world._changed(command.target)
        return reason

    world._attempt = attempt
    world.create(build.owned("Deployment", "web", 1, uid="dep"))
    for image in ("web:2", "web:1"):
        world.patch("Deployment", "web", {"spec": {"template": build.template(image)}})
    begun = world.now
    assert sent.count(begun) <= BURST_MAX + 10
    world.run(seconds(3))
    assert world.now == begun + seconds(3)


def test_pods_that_another_client_relabels_are_not_created_for_ever(new_world, build):
    """The owner must release the relabelled pods, and then lacks pods again."""
    world = new_world(Adoption(), Workloads(environment=served_environment())).load()

    def attempt(command):
        if isinstance(command, CreateObject) and command.manifest["kind"] == "Pod":
            meta = {**command.manifest["metadata"], "labels": {"app": "other"}}
            command = CreateObject({**command.manifest, "metadata": meta})
        return type(world)._attempt(world, command)

    world._attempt = attempt
    world.create(build.owned("ReplicaSet", "web", 2, uid="rs"))
    before = len(world.pods())
    assert BURST_MAX <= before <= BURST_MAX + 10
    begun = world.now
    world.run(seconds(1))
    assert world.now == begun + seconds(1)
    assert len(world.pods()) <= 3 * before
