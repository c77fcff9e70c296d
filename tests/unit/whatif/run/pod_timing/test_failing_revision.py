"""Revisions whose pods fail to start in a dump: their new pods fail, too."""

from __future__ import annotations

import pytest

from fairlead.engine.core.instant import seconds
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.conditions import Conditions
from fairlead.whatif.question import what_if
from fairlead.whatif.result.result_json import whatif_result
from fairlead.whatif.run.pod_timing.failing_revision import failing_revisions


@pytest.fixture
def of_revision(make):
    """Return a pod of a revision on a node; its container waits for `reason`, or runs ("")."""

    def pod_of_revision(name, node, reason="", revision="5d4"):
        pod = make.pod(name, node_name=node, owner=f"web-{revision}")
        pod["metadata"]["labels"] = {"app": "web", "pod-template-hash": revision}
        state = {"waiting": {"reason": reason}} if reason else {"running": {}}
        pod["status"] = {
            "phase": "Pending" if reason == "ImagePullBackOff" else "Running",
            "conditions": [{"type": "Ready", "status": "False" if reason else "True"}],
            "containerStatuses": [{"name": "c", "state": state}],
        }
        return pod

    return pod_of_revision


def reasons(found, *pods):
    failing = failing_revisions(found(*pods)).reasons
    return {(str(ref), revision): why for (ref, revision), why in failing.items()}


def test_a_revision_fails_if_all_its_pods_fail_on_several_nodes(found, of_revision):
    a, b = of_revision("a", "n1", "CrashLoopBackOff"), of_revision("b", "n2", "CrashLoopBackOff")
    other = of_revision("c", "n3", revision="7f8")
    assert reasons(found, a, b, other) == {("deploy/default/web", "5d4"): "CrashLoopBackOff"}
    assert reasons(found, a, of_revision("b", "n1", "CrashLoopBackOff")) == {}  # one node
    assert reasons(found, a, b, of_revision("c", "n3")) == {}
    leaving = of_revision("c", "n3")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert len(reasons(found, a, b, leaving)) == 1


def test_a_revision_fails_on_one_node_if_the_old_revision_and_the_node_work(
    found, of_revision, make
):
    """A StatefulSet replaces one pod at a time, so the new revision never has a second pod."""
    new = of_revision("a", "n1", "CrashLoopBackOff")
    old = of_revision("b", "n2", revision="7f8")
    neighbour = make.pod("neighbour", node_name="n1")
    neighbour["status"]["phase"] = "Running"
    assert reasons(found, new, old, neighbour) == {
        ("deploy/default/web", "5d4"): "CrashLoopBackOff"
    }
    assert reasons(found, new, old) == {}  # no other pod shows that the node works
    assert reasons(found, new, neighbour) == {}  # the workload may never have run
    assert reasons(found, new, old, neighbour, of_revision("c", "n3")) == {}
    neighbour["status"]["phase"] = "Pending"
    assert reasons(found, new, old, neighbour) == {}


@pytest.fixture
def stuck(make, snapshot, of_revision):
    """Return a dump with a Deployment whose only revision cannot pull its image."""
    deployment = make.workload(replicas=2)
    deployment["metadata"] |= {"uid": "web"}
    replica_set = make.workload("ReplicaSet", "web-5d4", replicas=2)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "web"}
    labels = {"app": "web", "pod-template-hash": "5d4"}
    replica_set["metadata"] |= {"uid": "web-5d4", "ownerReferences": [owner | {"controller": True}]}
    replica_set["metadata"]["labels"] = labels
    replica_set["spec"]["selector"] = {"matchLabels": labels}
    replica_set["spec"]["template"]["metadata"]["labels"] = labels
    pods = [of_revision(f"web-5d4-{node}", node, "ImagePullBackOff") for node in ("n1", "n2")]
    return snapshot(*map(make.node, ("n1", "n2")), deployment, replica_set, *pods)


NOTE = (
    "New pods of deploy/default/web (ImagePullBackOff) do not become ready, because no pod of "
    "their revision starts in the dump. --startup-time assumes that they start."
)


def test_more_pods_of_a_failing_revision_do_not_start(stuck):
    """Otherwise, scaling would seem to mend a rollout that is stuck."""
    answer = what_if(stuck, ClusterChange(scale=("deploy/web=3",)))
    assert whatif_result(answer)["verdict"]["sentence"] == (
        "1 more pod of deploy/default/web gets a node but does not start, as in the dump."
    )
    [web] = answer.effect.workloads
    assert (web.readiness.wanted, web.readiness.at_end) == (3, 0)
    assert NOTE in answer.changed.notes


@pytest.mark.parametrize("horizon_s", [3600, 60])
def test_displaced_pods_of_a_failing_revision_do_not_start(stuck, horizon_s):
    """A longer simulation would not show that they start."""
    conditions = Conditions(horizon=seconds(horizon_s))
    answer = what_if(stuck, ClusterChange(drain=("n1",)), conditions)
    assert answer.changed.settled == (horizon_s > 60)
    assert whatif_result(answer)["verdict"]["sentence"] == (
        "1 pod of deploy/default/web is displaced and does not start, as in the dump."
    )
    assert NOTE in answer.changed.notes


@pytest.mark.parametrize(
    ("change", "startup"),
    [
        (ClusterChange(set=("deploy/web:spec.template.spec.containers[0].image=good",)), None),
        (ClusterChange(scale=("deploy/web=3",)), seconds(5)),
    ],
    ids=["a new revision may start", "--startup-time applies to all pods"],
)
def test_new_pods_start(stuck, change, startup):
    answer = what_if(stuck, change, Conditions(startup=startup))
    assert answer.effect.workloads[0].readiness.at_end > 0
    assert NOTE not in answer.changed.notes
