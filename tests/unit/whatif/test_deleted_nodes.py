"""What-ifs that delete nodes with finalizers, whose controllers a simulation does not have."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.outcome.assessment.verdict import OutcomeKind, verdict_of
from fairlead.whatif.question import what_if

KARPENTER = "karpenter.sh/termination"


@pytest.fixture
def cluster(make):
    """Makes three nodes; node a, with `finalizers`, runs two of the three pods of web."""

    def objects(*finalizers):
        pods = [make.pod(f"web-{at}", node_name=node, owner="rs") for at, node in enumerate("aab")]
        for one in pods:
            one["metadata"]["labels"] = {"app": "web"}
        replica_set = make.workload("ReplicaSet", "rs", replicas=3)
        replica_set["spec"]["selector"] = {"matchLabels": {"app": "web"}}
        replica_set["spec"]["template"]["metadata"] = {"labels": {"app": "web"}}
        replica_set["metadata"]["uid"] = pods[0]["metadata"]["ownerReferences"][0]["uid"]
        found = [*map(make.node, "abc"), replica_set, *pods]
        found[0]["metadata"]["finalizers"] = list(finalizers)
        return found

    return objects


def budget(**spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


def names(answer):
    return [one.name for one in answer.changed.nodes]


def test_a_node_of_karpenter_is_drained_and_then_removed(cluster, snapshot):
    answer = what_if(snapshot(*cluster(KARPENTER)), ClusterChange(delete=("node/a",)))
    assert names(answer) == ["b", "c"]
    assert [one.why for one in answer.difference.evicted] == ["drain", "drain"]
    assert len(answer.difference.moved) == 2
    [note] = [one for one in answer.changed.notes if "Karpenter" in one]
    assert note.startswith("The deletion starts a drain of a: Karpenter drains its nodes within")


@pytest.mark.parametrize(
    ("capacity", "limit", "is_noted"),
    [
        ("spot", {}, True),
        ("spot", {"terminationGracePeriod": "2m"}, False),
        ("on-demand", {}, False),
    ],
)
def test_a_note_says_how_to_simulate_that_the_cloud_takes_back_a_node(
    cluster, snapshot, capacity, limit, is_noted
):
    """The machine of a spot node stops a short time after the notice, whatever budgets say."""
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "claim"},
        "spec": {"requirements": [], **limit},
        "status": {"nodeName": "a"},
    }
    objects = [*cluster(KARPENTER), claim]
    objects[0]["metadata"].setdefault("labels", {})["karpenter.sh/capacity-type"] = capacity
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/a",)))
    [note] = [one for one in answer.changed.notes if "starts a drain" in one]
    assert ("state terminationGracePeriod in the NodeClaims" in note) == is_noted


def test_deleting_a_failed_node_ends_a_terminating_pod_that_is_already_replaced(cluster, snapshot):
    """Only the deletion of the node ends the pod that terminates on it; no other pod changes."""
    objects = cluster()
    objects[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/a",)))
    assert answer.without.nodes[0].pods
    assert not answer.changed.node_names & {"a"}
    assert answer.difference.is_empty
    assert answer.verdict.findings[0].sentence == "Nothing changes for any pod."


@pytest.mark.parametrize(("value", "count"), [("true", 2), ("false", 1)])
def test_pods_that_karpenter_would_not_evict_are_noted(cluster, snapshot, value, count):
    objects = cluster(KARPENTER)
    objects[-3]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": value}
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/a",)))
    notes = [one for one in answer.changed.notes if "Karpenter" in one]
    assert len(notes) == count
    assert notes[0].startswith("The deletion starts a drain of a: ")
    assert all("do-not-disrupt (default/web-0). It waits" in one for one in notes[1:])


def test_a_budget_keeps_a_deleted_node_of_karpenter(cluster, snapshot):
    objects = [*cluster(KARPENTER, "example.com/other"), budget(maxUnavailable=0)]
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/a",)))
    assert names(answer) == ["a", "b", "c"]
    assert [one.pod.node for one in answer.changed.undrained] == ["a", "a"]


@pytest.mark.parametrize("finalizers", [(), ("wrangler.cattle.io/node", "example.com/other")])
def test_other_finalizers_are_removed_at_once(cluster, snapshot, finalizers):
    answer = what_if(snapshot(*cluster(*finalizers)), ClusterChange(delete=("node/a",)))
    assert names(answer) == ["b", "c"]
    assert not answer.difference.evicted
    assert not [one for one in answer.changed.notes if "Karpenter" in one]


@pytest.mark.parametrize(
    ("api_version", "kind"), [("kafka.strimzi.io/v1", "StrimziPodSet"), ("apps/v1", "StatefulSet")]
)
def test_pods_of_unknown_controllers_are_created_again(make, snapshot, api_version, kind):
    """Pod garbage collection marks a pod as failed before it deletes the pod."""
    pod = make.pod("db-0", node_name="a", owner="db")
    pod["metadata"]["ownerReferences"][0] |= {"apiVersion": api_version, "kind": kind}
    cluster = snapshot(make.node("a"), make.node("b"), pod)
    answer = what_if(cluster, ClusterChange(delete=("node/a",)))
    assert [(one.key, one.node) for one in answer.changed.pods.values()] == [("default/db-0", "b")]
    assert not answer.difference.gone


def test_karpenter_waits_for_a_pod_that_must_not_be_disrupted(cluster, snapshot):
    objects = cluster(KARPENTER)
    objects[4]["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "true"}
    answer = what_if(snapshot(*objects), ClusterChange(delete=("node/a",)))
    assert [pod.pod.key for pod in answer.difference.evicted] == ["default/web-1"]
    assert verdict_of(answer.effect).first.sentence == (
        "The drain does not complete: 1 pod on 1 node stays: Karpenter evicts no pod with the "
        "annotation karpenter.sh/do-not-disrupt."
    )


@pytest.fixture
def stuck(cluster, snapshot):
    """A dump in which a budget blocks the drain of node a, which is being deleted."""
    objects = cluster(KARPENTER)
    objects[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    for pod in objects[4:]:
        pod["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return snapshot(*objects, budget(maxUnavailable=0))


def test_a_drain_that_was_stuck_before_another_change_is_only_a_note(stuck):
    """The first line must not speak of a drain that the question does not contain."""
    answer = what_if(stuck, ClusterChange(cordon=("c",)))
    assert verdict_of(answer.effect).first.sentence == "Nothing changes for any pod."
    [note] = [one for one in answer.changed.notes if "is not drained" in one]
    assert note == (
        "Without the change, too, a is not drained, because 2 pods on it stay (default/web-0: "
        "Cannot evict pod as it would violate the pod's disruption budget (default/web))."
    )


def test_a_question_about_a_stuck_drain_is_answered(stuck):
    answer = what_if(stuck, ClusterChange(drain=("a",)))
    assert verdict_of(answer.effect).first.kind is OutcomeKind.UNDRAINED
    assert not any("is not drained" in one for one in answer.changed.notes)


def test_pods_that_were_replaced_before_the_deletion_of_their_node_are_not_lost(
    cluster, make, snapshot
):
    """They were evicted from the failed node, and terminate until it is deleted."""
    objects = cluster()
    objects[0]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]
    taint = {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"}
    objects[0]["spec"] = {"taints": [taint]}
    for pod in objects[4:6]:
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    new = [make.pod(f"web-new-{node}", node_name=node, owner="rs") for node in "bc"]
    for pod in new:
        pod["metadata"]["labels"] = {"app": "web"}
    answer = what_if(snapshot(*objects, *new), ClusterChange(delete=("node/a",)))
    assert answer.difference.gone == ()
    assert [pod.key for pod in answer.difference.removed] == ["default/web-0", "default/web-1"]


def test_the_answer_says_that_a_node_is_deleted_in_spite_of_a_finalizer(cluster, snapshot):
    answer = what_if(snapshot(*cluster("example.com/hold")), ClusterChange(delete=("node/a",)))
    assert names(answer) == ["b", "c"]
    assert (
        "Node a is deleted at once, although it has finalizers of controllers that are not "
        "simulated: example.com/hold." in answer.changed.notes
    )


@pytest.mark.parametrize(("deleted", "left"), [("b", ["a", "c"]), ("a", ["b", "c"])])
def test_a_node_whose_deletion_waits_for_a_finalizer_stays_until_it_is_deleted(
    cluster, snapshot, deleted, left
):
    """A what-if keeps it as plans do, unless the question is about its deletion."""
    objects = cluster("example.com/hold")
    objects[0]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    answer = what_if(snapshot(*objects), ClusterChange(delete=(f"node/{deleted}",)))
    assert [one.name for one in answer.without.nodes] == ["a", "b", "c"]
    assert names(answer) == left
    assert not answer.changed.skipped
