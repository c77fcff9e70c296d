"""Notes about controllers that are not simulated: only those that the answer concerns."""

from __future__ import annotations

import pytest

from fairlead.engine.scheduling.config import SchedulerConfig
from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.configuration.release import ReleaseChoice
from fairlead.whatif.explain.target import explain_object
from fairlead.whatif.question import what_if
from fairlead.whatif.snapshot.absent_owner import with_absent_owners

OF_PODS = "Controllers of custom resources are not simulated (Kafka)."
OF_BUDGETS = "Custom resources control pods whose budget allows no eviction now (Kafka)."


@pytest.fixture
def cluster(make, snapshot):
    """A node with a pod of a custom resource and its budget, and a node with a pod of web."""
    nodes = [make.node("a"), make.node("b"), make.node("c")]
    nodes[0]["metadata"]["uid"] = "a"
    web = make.workload("ReplicaSet", "web")
    web["metadata"]["uid"] = "web"
    pods = [make.pod("kafka-0", node_name="a"), make.pod("web-0", node_name="b", owner="web")]
    owner = {"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "name": "kafka", "uid": "kafka"}
    labels = {"app": "kafka"}
    pods[0]["metadata"] |= {"ownerReferences": [{**owner, "controller": True}], "labels": labels}
    pods[1]["metadata"]["labels"] = {"app": "web"}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "kafka", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}},
    }
    return snapshot(*nodes, web, *pods, budget)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"drain": ("b",)}, [], id="a drain of another node"),
        pytest.param({"scale": ("rs/web=2",)}, [], id="a scaled workload"),
        pytest.param({"drain": ("a",)}, [OF_PODS, OF_BUDGETS], id="a drain of its node"),
        pytest.param({"delete": ("pod/kafka-0",)}, [OF_PODS], id="a deleted pod"),
        pytest.param({}, [OF_PODS, OF_BUDGETS], id="no change: all notes about the dump"),
    ],
)
def test_a_what_if_names_the_controllers_whose_pods_the_change_concerns(cluster, change, expected):
    notes = what_if(cluster, ClusterChange(**change)).changed.notes
    assert [one.partition(").")[0] + ")." for one in notes if "ustom resources" in one] == expected


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("nodes", []),
        ("pods", []),
        ("node/b", []),
        ("node/a", [OF_PODS, OF_BUDGETS]),
        ("rs/web", []),
        ("kafka/kafka", [OF_BUDGETS]),
        ("pdb/kafka", [OF_BUDGETS]),
    ],
)
def test_an_explanation_names_the_controllers_of_evictions_that_it_is_about(
    cluster, target, expected
):
    read = with_absent_owners(cluster, target)
    notes = explain_object(read, target, SchedulerConfig(), ReleaseChoice()).notes
    assert [one.partition(").")[0] + ")." for one in notes if "ustom resources" in one] == expected


@pytest.mark.parametrize(
    ("node", "expected"), [("a", True), ("b", False)], ids=["of the leader", "of a worker"]
)
def test_a_drain_deletes_the_stateful_set_of_workers_only_with_the_leader(
    snapshot, make, node, expected
):
    leaders, workers = (make.workload("StatefulSet", name) for name in ("vllm", "vllm-0"))
    leader = make.pod("vllm-0", node_name="a", owner="vllm")
    worker = make.pod("vllm-0-1", node_name="b", owner="vllm-0")
    for one in (leaders, workers, leader, worker):
        one["metadata"]["uid"] = f"{one['kind']}-{one['metadata']['name']}"
    for pod in (leader, worker):
        owner = pod["metadata"]["ownerReferences"][0]
        owner |= {"kind": "StatefulSet", "uid": f"StatefulSet-{owner['name']}"}
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "vllm-0", "uid": "Pod-vllm-0"}
    workers["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    read = snapshot(*map(make.node, "abc"), leaders, workers, leader, worker)
    notes = what_if(read, ClusterChange(drain=(node,))).changed.notes
    assert any("is deleted with its pod" in one for one in notes) is expected
