"""The first status of a new generation of a workload, with the numbers before it."""

from __future__ import annotations

import pytest

from fairlead.engine.core.command import PatchStatus


@pytest.fixture
def statuses(observed_world):
    """Returns the status patches for objects of a kind, in order."""

    def statuses(kind):
        sent = observed_world.sent(PatchStatus)
        return [dict(one.fields) for one in sent if one.target.kind == kind]

    return statuses


@pytest.fixture
def create(observed_world, build):
    """Creates an owner in its first generation."""

    def created(kind, replicas=None, **spec):
        manifest = build.owned(kind, "web", replicas, uid="owner", **spec)
        manifest["metadata"]["generation"] = 1
        observed_world.create(manifest)

    return created


def test_the_first_status_of_a_replica_set(create, statuses):
    """The first status of a generation has the numbers from before it."""
    create("ReplicaSet", 2)
    first, second, *_ = statuses("ReplicaSet")
    assert first == {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1}
    assert second["replicas"] == 2


def test_the_first_status_of_a_daemon_set(observed_world, create, statuses, build):
    """The desired number of pods is known before any pod exists."""
    observed_world.create(build.node("n1"))
    create("DaemonSet")
    first, second, *_ = statuses("DaemonSet")
    assert first == {
        "observedGeneration": 1,
        "currentNumberScheduled": 0,
        "numberMisscheduled": 0,
        "desiredNumberScheduled": 1,
        "numberReady": 0,
        "numberUnavailable": 1,
    }
    assert second["currentNumberScheduled"] == 1


def test_the_first_status_of_a_stateful_set(create, statuses):
    """The first of two pods has been requested already, but the status does not count it yet."""
    create("StatefulSet", 2)
    first, second, *_ = statuses("StatefulSet")
    revision = first["updateRevision"]
    assert first == {
        "observedGeneration": 1,
        "replicas": 0,
        "availableReplicas": 0,
        "collisionCount": 0,
        "currentRevision": revision,
        "updateRevision": revision,
    }
    assert second["replicas"] == 1


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_the_first_status_after_scaling_up_counts_existing_pods(
    observed_world, create, statuses, kind
):
    create(kind, 1)
    before = len(statuses(kind))
    observed_world.patch(kind, "web", {"metadata": {"generation": 2}, "spec": {"replicas": 2}})
    first, second, *_ = statuses(kind)[before:]
    assert first == {"observedGeneration": 2}
    assert second["replicas"] == 2
