"""Custom resources that a dump lacks, but that pods name as their controllers."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.snapshot.absent_owner import with_absent_owners

API = "core.strimzi.io/v1beta2"


@pytest.fixture
def kafka(make, snapshot):
    """Returns a cluster with three pods of a StrimziPodSet, and the given objects."""

    def cluster(*objects):
        pods = [make.pod(f"kafka-{number}", node_name="a") for number in range(3)]
        for pod in pods:
            owner = {"apiVersion": API, "kind": "StrimziPodSet", "name": "kafka", "uid": "k"}
            pod["metadata"]["ownerReferences"] = [owner | {"controller": True}]
            pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        return snapshot(make.node("a"), *pods, *objects)

    return cluster


@pytest.mark.parametrize(
    "target",
    ["strimzipodset/kafka", "strimzipodsets/default/kafka", "strimzipodset.core.strimzi.io/kafka"],
)
def test_a_custom_resource_is_explained_by_its_pods(kafka, target):
    cluster = with_absent_owners(kafka(), target)
    answer = explain_object(cluster, target, SchedulerConfig(), NO_CHOICE)
    assert answer.verdict == "All 3 wanted pods of strimzipodset/default/kafka are ready."


def test_a_snapshot_that_lacks_nothing_is_unchanged(kafka):
    meta = {"name": "kafka", "namespace": "default", "uid": "k"}
    cluster = kafka({"apiVersion": API, "kind": "StrimziPodSet", "metadata": meta})
    assert with_absent_owners(cluster, "strimzipodset/kafka") is cluster
    other = kafka()
    assert with_absent_owners(other, "pod/kafka-0") is other


@pytest.mark.parametrize(
    "owner",
    [{"name": "a/b"}, {"apiVersion": "a/b/c"}, {"kind": ""}, {"name": ""}],
)
def test_a_reference_that_no_object_can_have_is_left_out(kafka, make, owner):
    """An error about the owner would name an object that is not in the dump."""
    pod = make.pod("other", node_name="a")
    wrong = {"apiVersion": API, "kind": "Odd", "name": "odd", "uid": "o", "controller": True}
    pod["metadata"]["ownerReferences"] = [wrong | owner]
    cluster = with_absent_owners(kafka(pod), "strimzipodset/kafka")
    added = {one.title for one in cluster.manifests} - {one.title for one in kafka(pod).manifests}
    assert added == {"StrimziPodSet default/kafka"}
