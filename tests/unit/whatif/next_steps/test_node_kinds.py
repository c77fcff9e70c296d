"""New nodes of several kinds, if no single kind admits all pending pods."""

from __future__ import annotations

import pytest

from fairlead.whatif.change.cluster_change import ClusterChange
from fairlead.whatif.next_steps.new_nodes import NewNodes
from fairlead.whatif.next_steps.node_kinds import NodeKind, add_to_kinds, mixed
from fairlead.whatif.outcome.run_outcome import NodeEnd, PodEnd
from fairlead.whatif.outcome.workload import WorkloadRef
from fairlead.whatif.question import what_if

TAINT = {"key": "pool", "value": "db", "effect": "NoSchedule"}
TOLERATION = {"key": "pool", "operator": "Exists"}


def pools(make, *, taints, web_selector):
    """Two full pools; web runs on the general pool and db on the pool db."""
    nodes = [make.node("general", pool="general"), make.node("db", pool="db")]
    nodes[1]["spec"] = {"taints": [TAINT] if taints else []}
    cluster = nodes
    for name, node in (("web", "general"), ("db", "db")):
        spec = {"nodeSelector": {"pool": node}} if name == "db" or web_selector else {}
        if name == "db":
            spec["tolerations"] = [TOLERATION]
        owner = make.workload("ReplicaSet", name, replicas=1, cpu="3", **spec)
        owner["metadata"]["uid"] = name
        pod = make.pod(f"{name}-0", node_name=node, owner=name, cpu="3", **spec)
        pod["metadata"]["labels"] = {"app": name}
        cluster += [owner, pod]
    return cluster


def steps_of(answer):
    return [(one.words, one.options) for one in answer.next_steps if "add-nodes" in one.options]


BOTH = ("rs/web=2", "rs/db=3")


@pytest.mark.parametrize(
    ("taints", "web_selector"), [(True, True), (True, False), (False, True)]
)  # fmt: skip
def test_each_kind_of_node_is_added_for_its_pods(snapshot, make, taints, web_selector):
    cluster = snapshot(*pools(make, taints=taints, web_selector=web_selector))
    [(words, options)] = steps_of(what_if(cluster, ClusterChange(scale=BOTH)))
    nodes = "2 more nodes like db and one more node like general"
    assert words == f"ask again with {nodes}; fewer may be enough"
    assert options == "--add-nodes 3 --like db:2,general"
    change = ClusterChange(scale=BOTH, add_nodes=3, like="db:2,general")
    assert not what_if(cluster, change).difference.pending


def test_one_kind_is_enough_if_it_admits_all_pods(snapshot, make):
    """The pods of web need no label, and the nodes for db have no taint."""
    cluster = snapshot(*pools(make, taints=False, web_selector=False))
    [(_, options)] = steps_of(what_if(cluster, ClusterChange(scale=BOTH)))
    assert options == "--add-nodes 3 --like db"


@pytest.mark.parametrize("scale", [BOTH, ("rs/db=3",)])
def test_a_question_with_new_nodes_gets_nodes_of_the_other_kind(snapshot, make, scale):
    """The new node like `general` takes no pod of db."""
    cluster = snapshot(*pools(make, taints=True, web_selector=True))
    change = ClusterChange(scale=scale, add_nodes=1, like="general")
    [step] = steps_of(what_if(cluster, change))
    assert step == (
        "ask again with 2 more nodes like db; fewer may be enough",
        "--add-nodes 3 --like db:2,general",
    )


def test_a_custom_resource_has_the_rules_of_its_pods(snapshot, make):
    """A PyTorchJob has no spec.template: its pod templates are in spec.pytorchReplicaSpecs."""
    api, uid = "kubeflow.org/v1", "1"
    metadata = {"name": "job", "namespace": "default", "uid": uid}
    job = {"apiVersion": api, "kind": "PyTorchJob", "metadata": metadata, "spec": {}}
    owner = {"apiVersion": api, "kind": "PyTorchJob", "name": "job", "uid": uid, "controller": True}
    worker = make.pod("worker", node_name="gpu", cpu="3", nodeSelector={"pool": "gpu"})
    worker["metadata"]["ownerReferences"] = [owner]
    nodes = [make.node("general"), make.node("gpu", pool="gpu")]
    high = make.priority_class("high", 10)
    web = make.workload("ReplicaSet", "web", replicas=0, cpu="3", priorityClassName="high")
    cluster = snapshot(*nodes, job, worker, web, high)
    [(_, options)] = steps_of(what_if(cluster, ClusterChange(scale=("rs/web=3",))))
    assert options == "--add-nodes 2 --like gpu"


def test_no_copies_are_added_of_named_nodes_that_do_not_admit_the_pods(snapshot, make):
    """The new node like `db` has room, but takes no pod of web."""
    cluster = snapshot(*pools(make, taints=True, web_selector=False))
    change = ClusterChange(scale=("rs/web=7", "rs/db=2"), add_nodes=4, like="general:3,db")
    [step] = steps_of(what_if(cluster, change))
    assert step == (
        "ask again with 3 more nodes like general; fewer may be enough",
        "--add-nodes 7 --like db,general:6",
    )


def test_named_nodes_that_admit_the_pods_keep_their_ratio(snapshot, make):
    """A spread over zones, for example, needs nodes of both."""
    cluster = snapshot(*pools(make, taints=False, web_selector=False))
    change = ClusterChange(scale=("rs/web=9",), add_nodes=4, like="general,db")
    [step] = steps_of(what_if(cluster, change))
    assert step == (
        "ask again with 4 more nodes like general, db; fewer may be enough",
        "--add-nodes 8 --like general,db",
    )


def test_only_the_kind_that_gets_a_pod_loses_the_nodes_that_do_not_admit_it():
    """web-0 is admitted by a1 and b1, and joins the kind with the smallest requests: b1 and b2."""
    db = WorkloadRef("StatefulSet", "default", "db")
    web = WorkloadRef("ReplicaSet", "default", "web")
    a1, a2, b1, b2 = (
        NodeEnd(name=name, zone="", unschedulable=False, allocatable={}, requested={}, pods=())
        for name in ("a1", "a2", "b1", "b2")
    )
    first, second, last = (
        PodEnd(namespace="default", name=name, owner=owner, requests={"cpu": cpu})
        for name, owner, cpu in (("db-0", db, 2000), ("db-1", db, 1000), ("web-0", web, 500))
    )
    found = [NodeKind([first], [a1, a2]), NodeKind([second], [b1, b2])]
    before = [[*one.pods] for one in found]
    kinds = [*found]
    add_to_kinds(kinds, NodeKind([last], [a1, b1]))
    assert kinds == [NodeKind([first], [a1, a2]), NodeKind([second, last], [b1])]
    assert [one.pods for one in found] == before


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"b": 1, "a": 2}, NewNodes(3, "a:2,b")),
        ({"a": 7, "b": 7}, NewNodes(14, "a,b")),
        ({"a": 30, "b": 10}, NewNodes(40, "a:3,b")),
        ({"a": 100, "b": 1}, NewNodes(101, "a:100,b")),
    ],
)
def test_a_mix_has_exactly_the_copies_of_each_kind(counts, expected):
    found = mixed(counts)
    assert found == expected
    assert found.copies == counts
