"""The order of nodes to remove, and the removal of whole groups."""

from __future__ import annotations

from fairlead.conformance.autoscaler.case import decide_autoscaler
from fairlead.engine.autoscaling.cluster_autoscaler.scaledown.deletion_tracker import (
    NodeDeletionTracker,
)

CREATED = "2025-12-31T23:00:00Z"


def node(name, *, created=CREATED, ready="True", group=None):
    amounts = {"cpu": "4", "memory": "16Gi", "pods": "20"}
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": created}
    return {
        "metadata": {"name": name, "creationTimestamp": created},
        "spec": {"providerID": f"fleet://{group or name.partition('-')[0]}/{name}"},
        "status": {"allocatable": amounts, "capacity": amounts, "conditions": [condition]},
    }


def group(name, least=0, **more):
    return {"id": name, "min": least, "max": 9, "template": node("t"), **more}


def whole(name, **more):
    return group(name, options={"zero-or-max-node-scaling": True}, **more)


def scale_down(**case):
    options = {"scale-down-unneeded-time": "0s", **case.pop("options", {})}
    found = decide_autoscaler({"name": "c", "pods": [], **case, "options": options})
    return found["loops"][-1]["scaleDown"]


def test_deletions_in_progress_are_sorted_by_name():
    tracker = NodeDeletionTracker()
    for name in ("b", "a"):
        tracker.start("g", name, drain=True)
        tracker.start("g", f"{name}-empty", drain=False)
    found = tracker.in_progress()
    assert (found.empty, found.drained) == (("a-empty", "b-empty"), ("a", "b"))


def test_groups_to_delete_as_a_whole_are_sorted_by_id():
    found = scale_down(nodeGroups=[whole("b"), whole("a")], nodes=[node("b-0"), node("a-0")])
    assert found["toDelete"]["empty"] == ["a-0", "b-0"]


def test_a_whole_group_has_as_many_nodes_as_its_registered_ones_in_the_snapshot():
    # upstream: scale_down_set_processor.go: getAllRegisteredNodesForNodeGroup. Placeholders take
    # the place of nodes that have not started.
    found = scale_down(
        nodeGroups=[whole("a", target=2)],
        nodes=[node("a-0"), node("a-1", created="2025-12-31T23:59:00Z", ready="False")],
        scaleUpsInProgress=[{"group": "a", "delta": 1, "age_s": 60}],
        options={"scale-down-delay-after-add": "0s"},
    )
    assert found["toDelete"]["empty"] == ["a-0"]


def test_nodes_that_were_unneeded_before_the_cluster_was_unhealthy_come_first():
    # upstream: previous_candidates_sorting.go; CleanUpUnneededNodes does not reset it
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": "w"}
    busy = {
        "metadata": {
            "name": "p",
            "namespace": "d",
            "creationTimestamp": CREATED,
            "ownerReferences": [{**owner, "controller": True}],
        },
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
            "nodeName": "a-0",
            "schedulerName": "default-scheduler",
        },
        "status": {"phase": "Running"},
    }
    loops = decide_autoscaler(
        {
            "name": "c",
            "duration_ms": 31_000,
            "nodeGroups": [group("a"), group("b", 1)],
            "nodes": [node("a-0"), node("a-1"), node("b-0")],
            "pods": [busy],
            "script": [
                {"t_ms": 12_000, "op": "unready", "node": "b-0"},
                {"t_ms": 22_000, "op": "ready", "node": "b-0"},
                {"t_ms": 23_000, "op": "delete_pod", "key": "d/p"},
            ],
            "options": {"ok-total-unready-count": 0, "max-total-unready-percentage": 10},
        }
    )["loops"]
    assert [one["scaleDown"].get("candidates") for one in loops] == [
        ["a-1", "a-0"],
        None,
        ["a-1", "a-0"],
    ]
