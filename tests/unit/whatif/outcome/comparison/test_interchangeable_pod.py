"""A pod that replaces another pod of its workload is no difference."""

from __future__ import annotations

import pytest
from tests.unit.whatif.outcome.comparison.test_difference import outcome, pod

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.comparison.effect import effect_of
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if

INDEXED = {"batch.kubernetes.io/job-completion-index": "0"}


def web(name, node="", kind="Deployment", **fields):
    return pod(name, node, owner=WorkloadRef(kind, "ns", "web"), **fields)


def exchanged(before, after):
    """Return whether the pending pod and the running pod have exchanged names between the runs."""
    found = effect_of(outcome(*before), outcome(*after))
    ends = {one.name: one.node for one in found.changed.pods.values()}
    assert [*found.changed.pods] == [one.key for one in found.changed.pods.values()]
    return not found.difference.pending and ends == {"p": "b", "q": ""}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param([web("p", "a"), web("q")], [web("p"), web("q", "b")], True, id="a Deployment"),
        pytest.param(
            [web("p", "a", "StatefulSet"), web("q", kind="StatefulSet")],
            [web("p", kind="StatefulSet"), web("q", "b", "StatefulSet")],
            False,
            id="a StatefulSet, whose pods have identities",
        ),
        pytest.param(
            [web("p", "a", "Job", labels=INDEXED), web("q", kind="Job", labels=INDEXED)],
            [web("p", kind="Job", labels=INDEXED), web("q", "b", "Job", labels=INDEXED)],
            False,
            id="an indexed Job",
        ),
        pytest.param(
            [web("p", "a", requests={"cpu": 2}), web("q", requests={"cpu": 1})],
            [web("p", requests={"cpu": 2}), web("q", "b", requests={"cpu": 1})],
            False,
            id="pods of different sizes",
        ),
        pytest.param(
            [pod("p", "a"), pod("q")], [pod("p"), pod("q", "b")], False, id="pods without an owner"
        ),
    ],
)
def test_interchangeable_pods_exchange_their_names(before, after, expected):
    assert exchanged(before, after) is expected


def test_more_waiting_pods_are_a_difference():
    before = [web("p", "a"), web("q", "a"), web("r")]
    found = effect_of(outcome(*before), outcome(web("p"), web("q"), web("r", "b"))).difference
    assert len(found.pending) == 1
    assert [(one.pod.name, one.origin, one.target) for one in found.moved] == [("p", "a", "b")]


def test_the_replacement_of_a_deleted_pod_is_not_reported_as_newly_pending(snapshot, make):
    """One of two replicas fits: the one that waited, because the replacement comes later."""
    workload = make.workload("ReplicaSet", "web", replicas=2)
    workload["metadata"]["uid"] = "web"
    pods = [make.pod("web-0", node_name="a", owner="web"), make.pod("web-1", owner="web")]
    for one in pods:
        one["metadata"]["labels"] = {"app": "web"}
    answer = what_if(
        snapshot(make.node("a", cpu="1"), workload, *pods), ClusterChange(delete=("pod/web-0",))
    )
    assert answer.difference.pending == ()
    assert {key: one.node for key, one in answer.changed.pods.items()} == {
        "default/web-0": "a",
        "default/web-1": "",
    }
    [node] = answer.changed.nodes
    assert [one.key for one in node.pods] == ["default/web-0"]
