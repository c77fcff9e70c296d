"""Terminating pods of a dump that their kubelets cannot stop."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.change.node_outage.node_failure import Failures
from fairlead.whatif.configuration.release import NO_CHOICE
from fairlead.whatif.explain.pod import explain_pod
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.input.error import InputError
from fairlead.whatif.question import what_if
from fairlead.whatif.run.pod_timing.stuck_pod import stuck_pods

LONG_AGO, RECENT, LATER = "2026-01-01T00:00:00Z", "2026-01-01T01:55:00Z", "2026-01-01T03:00:00Z"
TAKEN_AT = "2026-01-01T02:00:00Z"
WHY = f"not stopped, although the grace period ended at {LONG_AGO}"


@pytest.fixture
def dump(make, snapshot):
    """Return a function that makes a dump with a terminating pod of a StatefulSet on node a."""

    def made(end=LONG_AGO, ready="True", **meta):
        nodes = [make.node("a"), make.node("b")]
        for node in nodes:
            node["metadata"]["creationTimestamp"] = TAKEN_AT
        if ready:
            condition = {"type": "Ready", "status": ready, "lastTransitionTime": LONG_AGO}
            nodes[0]["status"]["conditions"] = [condition]
        db = make.workload("StatefulSet", "db", replicas=1)
        db["metadata"]["uid"] = "db"
        pod = make.pod("db-0", node_name="a", owner="db")
        pod["metadata"]["ownerReferences"][0]["kind"] = "StatefulSet"
        pod["metadata"] |= {
            "labels": {"app": "db"},
            "uid": "db-0",
            "deletionTimestamp": end,
            "deletionGracePeriodSeconds": 30,
            **meta,
        }
        return snapshot(*nodes, db, pod)

    return made


def test_a_malformed_deletion_timestamp_is_refused(dump):
    """The store refuses it when it loads the pod."""
    refusal = r"Pod default/db-0: metadata.deletionTimestamp: .* is not an RFC 3339 timestamp"
    with pytest.raises(InputError, match=refusal):
        what_if(dump(end="yesterday"), ClusterChange(drain=("a",)))


@pytest.mark.parametrize(
    ("fields", "is_stuck"),
    [
        ({}, True),
        ({"end": RECENT}, False),
        ({"end": LATER}, False),
        ({"ready": "Unknown"}, False),
        ({"finalizers": ["example.com/keep"]}, False),
        ({"annotations": {"kubernetes.io/config.mirror": "1"}}, False),
    ],
    ids=["long ago", "recently", "later", "silent node", "finalizer", "static pod"],
)
def test_a_pod_is_stuck_long_after_its_grace_period_on_a_ready_node(dump, fields, is_stuck):
    read = dump(**fields)
    assert list(stuck_pods(read.manifests, read.taken_at).deleted_at) == (
        ["default/db-0"] if is_stuck else []
    )


def test_a_drain_waits_for_a_stuck_pod(dump):
    """kubectl drain waits too, and the StatefulSet cannot create the pod again."""
    answer = what_if(dump(), ClusterChange(drain=("a",)))
    [left] = answer.changed.undrained
    assert (left.pod.key, left.why) == ("default/db-0", WHY)
    assert answer.verdict.first.sentence == (
        f"The drain does not complete: 1 pod on 1 node stays: {WHY}."
    )
    assert answer.changed.pods["default/db-0"].is_terminating
    assert (
        "1 pod has not stopped long after the end of the grace period (default/db-0); the answer "
        "assumes that it does not stop."
    ) in answer.changed.notes
    assert what_if(dump(RECENT), ClusterChange(drain=("a",))).changed.undrained == ()


def test_a_stuck_pod_ends_with_its_machine(dump):
    """The StatefulSet then creates the pod again."""
    failures = Failures(fail_node=("a",))
    changed = what_if(dump(), ClusterChange(failures=failures, lasts="10m")).changed
    pod = changed.pods["default/db-0"]
    assert not pod.is_terminating
    assert pod.started_at is not None


def test_a_stuck_pod_blocks_the_drain_of_its_node(dump):
    answer = explain_object(dump(), "node/a", SchedulerConfig(), NO_CHOICE)
    assert answer.verdict == (f"a cannot be drained now: pod/default/db-0 is being deleted; {WHY}.")
    blockers = next(one.rows for one in answer.tables if one.name == "edits")
    assert "--skip-wait-for-delete-timeout" in blockers[0]["edit"]
    [state] = explain_pod(dump(), "pod/db-0", SchedulerConfig()).state
    assert WHY in state
