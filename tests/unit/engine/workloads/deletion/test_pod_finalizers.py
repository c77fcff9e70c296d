"""Finalizers of other programs are removed from deleted pods that have ended."""

from __future__ import annotations

import pytest

from fairlead.api.timestamp import format_timestamp
from fairlead.engine.core.instant import seconds
from fairlead.engine.workloads.deletion.pod_finalizers import PodFinalizers

TRACKING = "batch.kubernetes.io/job-tracking"
MANAGED = "kueue.x-k8s.io/managed"


@pytest.fixture
def world(new_world):
    return new_world(PodFinalizers())


def held(build, *finalizers, meta=None, **how):
    return build.pod("a", meta={"finalizers": list(finalizers), **(meta or {})}, **how)


def finalizers(world):
    pod = world.get("Pod", "a")
    return None if pod is None else pod["metadata"].get("finalizers", [])


def end(world, phase="Failed"):
    world.patch_status("Pod", "a", {"phase": phase})


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_a_deleted_pod_is_removed_when_it_has_ended(world, build, phase):
    world.load(build.node("n1"), held(build, MANAGED, "workflows.argoproj.io/status"))
    world.delete("Pod", "a")
    assert finalizers(world) == [MANAGED, "workflows.argoproj.io/status"]
    end(world, phase)
    assert not finalizers(world)


def test_a_deleted_pod_without_a_node_is_removed_at_once(world, build):
    world.load(held(build, MANAGED, node=None, phase="Pending"))
    world.delete("Pod", "a")
    assert not finalizers(world)


def test_a_pod_that_is_not_deleted_keeps_its_finalizers(world, build):
    world.load(build.node("n1"), held(build, MANAGED))
    end(world)
    assert finalizers(world) == [MANAGED]


def test_the_job_controller_removes_its_finalizer_first(world, build):
    world.load(build.node("n1"), held(build, TRACKING, MANAGED))
    world.delete("Pod", "a")
    end(world)
    assert finalizers(world) == [TRACKING, MANAGED]
    world.patch("Pod", "a", {"metadata": {"finalizers": [MANAGED]}})
    assert not finalizers(world)


@pytest.mark.parametrize(
    ("phase", "late_s", "ready", "is_kept"),
    [
        pytest.param("Failed", -10, "True", True, id="it has ended"),
        pytest.param("Running", 10, "True", True, id="its grace period is over"),
        pytest.param("Running", -10, "True", False, id="its containers still stop"),
        pytest.param("Running", 10, "Unknown", False, id="its kubelet does not answer"),
    ],
)
def test_a_finalizer_that_kept_an_ended_pod_in_the_dump_stays(
    world, build, phase, late_s, ready, is_kept
):
    node = build.node("n1")
    node["status"] = {"conditions": [{"type": "Ready", "status": ready}]}
    meta = {"deletionTimestamp": format_timestamp(world.now - seconds(late_s))}
    world.load(node, held(build, MANAGED, meta=meta, phase=phase))
    end(world)
    assert (finalizers(world) == [MANAGED]) is is_kept
