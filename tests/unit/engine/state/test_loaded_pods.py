"""Loads of replicas: their pods are counted together, and each pod is built on first use."""

from __future__ import annotations

import pytest

from fairlead.engine.core.stimulus import ObjectsLoaded
from fairlead.engine.state.change_log import _LENGTH_MAX
from fairlead.testing.builders import make_node, make_pod

NODES = ("n1", "n2")


def load(believer, *objects):
    believer.cluster.apply(ObjectsLoaded(objects))


def replicas(prefix="p", **fields):
    """A pod on each node; the pods are replicas of each other."""
    return [make_pod(f"{prefix}-{node}", node=node, **fields) for node in NODES]


def affinity_to(node):
    """The affinity that the DaemonSet controller gives to a pod for `node`."""
    named = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


@pytest.fixture
def loaded(believer):
    """Nodes, to which nothing has been assigned."""
    load(believer, *map(make_node, NODES))
    return believer


def test_loaded_replicas_use_their_host_ports(loaded):
    """On each node; the ports are free again when the pod is deleted."""
    load(loaded, *replicas(host_ports=[80, 443]))
    ports = {("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 443)}
    assert [set(loaded.node(name).used_ports) for name in NODES] == [ports, ports]
    loaded.gone(make_pod("p-n1", node="n1"))
    assert [set(loaded.node(name).used_ports) for name in NODES] == [set(), ports]


def test_loaded_replicas_with_their_own_node_affinity_have_their_own_shapes(loaded):
    """Like the pods of a DaemonSet, each of which has the name of its node."""
    pods = [
        make_pod(f"p-{name}", node=name, spec={"affinity": affinity_to(name)}) for name in NODES
    ]
    load(loaded, *pods)
    known = [loaded.known(pod.key) for pod in pods]
    assert [one.shape.spec.affinity for one in known] == [pod.spec.affinity for pod in pods]
    assert known[0].shape is not known[1].shape
    assert [one.shape for one in known] == [loaded.info(pod).shape for pod in pods]


def test_bound_shapes_count_loaded_pods_and_pods_that_were_built(loaded):
    """A pod without a node does not count."""
    load(loaded, *replicas(requests={"cpu": "1"}), *replicas("q", requests={"cpu": "2"}))
    shape = loaded.known("default/p-n1").shape
    other = loaded.info(make_pod("x", requests={"cpu": "2"})).shape
    assert loaded.cluster.bound_shapes() == {shape: 2, other: 2}
    loaded.put(make_pod("r", node="n1", requests={"cpu": "1"}), make_pod("s"))
    assert loaded.cluster.bound_shapes() == {shape: 3, other: 2}


def test_anti_affinity_of_loaded_replicas_repels_other_pods(loaded):
    """Required anti-affinity terms are indexed once for each pod."""
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    load(loaded, *replicas(spec={"affinity": {"podAntiAffinity": required}}))
    index = loaded.table.pod_index
    (placed,) = index.terms_of(loaded.known("default/p-n1"))
    assert placed.where.rows == {loaded.node(name).row: 1 for name in NODES}
    assert index.repelling == 2


def test_loaded_pods_of_an_existing_class_are_added(loaded):
    """Their rows are appended to the rows of the earlier pods."""
    load(loaded, *replicas(labels={"app": "web"}))
    load(loaded, *replicas("q", labels={"app": "web"}))
    web = loaded.table.pod_index.pod_class_of(loaded.known("default/q-n1"))
    assert web.where.rows == {loaded.node(name).row: 2 for name in NODES}


def test_loaded_pods_stay_known_while_their_node_is_deleted(loaded):
    """They are counted again when the node is recreated."""
    load(loaded, *replicas(requests={"cpu": "1"}))
    loaded.gone(make_node("n1"))
    assert loaded.known("default/p-n1").pod.spec.node_name == "n1"
    loaded.put(make_node("n1"))
    assert (loaded.on("n1"), loaded.requested("n1")) == (["default/p-n1"], 1000)


def test_rows_that_changed_since_the_load_are_read_one_by_one(loaded):
    """The groups keep the pods as they were loaded."""
    load(loaded, *replicas())
    pods = loaded.table.loaded
    assert [list(group.rows) for group in pods.groups] == [[loaded.node(n).row for n in NODES]]
    assert not pods.changed_rows()
    row = loaded.node("n2").row
    loaded.gone(make_pod("p-n2", node="n2"))
    assert pods.changed_rows() == {row}
    loaded.gone(make_node("n1"))
    assert pods.changed_rows() == {row, 0}


def test_all_rows_are_read_once_the_log_has_dropped_changes(loaded):
    """Loads after that add no groups, because no row is known to be unchanged."""
    load(loaded, *replicas())
    pods, log = loaded.table.loaded, loaded.table.pod_log
    for _ in range(_LENGTH_MAX + 1):
        log.append(0)
    assert pods.changed_rows() is None
    assert pods.groups == []
    load(loaded, *replicas("q"))
    loaded.gone(make_node("n1"))
    assert pods.changed_rows() is None
    assert pods.groups == []
