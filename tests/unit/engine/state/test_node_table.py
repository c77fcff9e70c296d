"""NodeTable: rows are added, extended, removed and reused; change logs list the changed rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import decode_as
from fairlead.api.lazy_dict import LazyDict
from fairlead.api.objects import Node
from fairlead.engine.core.stimulus import ObjectDeleted, ObjectsLoaded
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.node_table import _CAPACITY_INITIAL, NodeTable
from fairlead.engine.state.resource_columns import MEMORY
from fairlead.testing.builders import make_node, make_pod

GPU = "nvidia.com/gpu"
GIB = 1 << 30


def test_the_columns_of_a_node(believer):
    """cpu in milli, memory in bytes, the number of pods, and flags."""
    believer.put(make_node("n1", taints=["a:NoSchedule"], unschedulable=True, cpu="1500m"))
    table, node = believer.table, believer.node("n1")
    assert table.allocatable[:, node.row].tolist() == [1500, 16 * GIB, 0]
    assert (node.allowed_pods, table.allowed_pods[node.row]) == (110, 110)
    is_tainted = bool(table.taint_ids[node.row])
    assert (table.alive[node.row], is_tainted, table.unschedulable[node.row]) == (True, True, True)


def test_the_columns_of_a_table_are_read_only(believer):
    """A slice of a column is no copy, so a plugin that changes it would change the cluster."""
    believer.put(*(make_node(f"n{number}") for number in range(_CAPACITY_INITIAL + 1)))
    table = believer.table
    columns = (table.allocatable[0], table.requested, table.pod_count, table.alive, table.offered,
               table.allowed_pods, table.nonzero_cpu, table.taint_ids, table.unschedulable,
               table.label_column("zone").ids, table.label_column("zone").domains().ids,
               table.values(table.requested, table.every_row()))  # fmt: skip
    for column in columns:
        with pytest.raises(ValueError, match="read-only"):
            column[...] = 0


@pytest.mark.parametrize("is_loaded", [False, True])
def test_the_pods_of_a_node_are_read_only(believer, is_loaded):
    """A plugin that removed a pod here would make the cluster fail later."""
    believer.put(make_node("n1"))
    pods = [make_pod(f"p{number}", node="n1") for number in range(3)]
    if is_loaded:
        believer.cluster.apply(ObjectsLoaded(pods))
    else:
        believer.put(*pods)
    node = believer.node("n1")
    assert isinstance(node.stored_pods, LazyDict) == is_loaded
    assert not hasattr(node.pods, "clear")
    with pytest.raises(TypeError, match="does not support item deletion"):
        del node.pods["uid-p0"]
    assert [pod.key for pod in node.pods.values()] == ["default/p0", "default/p1", "default/p2"]


def test_nodes_whose_taints_differ_in_their_times_share_an_id(believer):
    taint = {"key": "a", "effect": "NoExecute"}
    nodes = {
        "n1": [taint],
        "n2": [{**taint, "timeAdded": "2026-01-01T00:00:00Z"}],
        "n3": [{**taint, "value": "x"}],
        "n4": [],
    }
    for name, taints in nodes.items():
        believer.put(decode_as(Node, {"metadata": {"name": name}, "spec": {"taints": taints}}))
    first, second, third, fourth = (
        believer.table.taint_ids[believer.node(name).row] for name in nodes
    )
    assert first == second
    assert len({0, first, third}) == 3
    assert fourth == 0


def test_the_columns_of_a_node_with_a_pod(believer):
    """Requests, defaults for missing requests, host ports, and the number of pods."""
    believer.put(make_node("n1"), make_pod("a", node="n1", requests={"cpu": "1"}, host_ports=[80]))
    table, node = believer.table, believer.node("n1")
    assert table.requested[:, node.row].tolist() == [1000, 0, 0]
    assert (table.nonzero_cpu[node.row], table.nonzero_memory[node.row]) == (1000, 200 << 20)
    assert list(node.used_ports) == [("0.0.0.0", "TCP", 80)] or len(node.used_ports) == 1
    assert table.pod_count[node.row] == 1


@pytest.mark.parametrize("first", ["huge", "usual"])
def test_columns_are_limited_to_the_maximum_of_int64(first):
    """The sums of the NodeInfo are exact, so that pods can be removed again."""
    huge = [make_pod(f"h{i}", node="n1", requests={"memory": "7E"}, uid=f"h{i}") for i in range(3)]
    usual = [make_pod(f"u{i}", node="n1", requests={"memory": "1"}, uid=f"u{i}") for i in range(2)]
    pods = [*huge, *usual] if first == "huge" else [*usual, *huge]
    cluster = Cluster()
    cluster.apply(ObjectsLoaded([make_node("n1"), *pods]))
    node = cluster.table.find("n1")
    assert node.requested_of(MEMORY) == 21 * 10**18 + 2
    assert cluster.table.requested[MEMORY, node.row] == 2**63 - 1
    for pod in huge:
        cluster.apply(ObjectDeleted(pod))
    assert cluster.table.requested[MEMORY, node.row] == 2
    cluster.table.validate()


def test_resources_get_columns_when_they_are_first_seen(believer):
    """For nodes and pods; earlier rows have 0 of them."""
    believer.put(make_node("n1"), make_node("n2", **{GPU: 8}))
    believer.put(make_pod("a", node="n1", requests={"example.com/fpga": 2, GPU: 1}))
    table = believer.table
    gpu, fpga = table.resources.column(GPU), table.resources.column("example.com/fpga")
    one, two = believer.node("n1").row, believer.node("n2").row
    assert table.allocatable[gpu, [one, two]].tolist() == [0, 8]
    assert table.requested[[gpu, fpga], one].tolist() == [1, 2]
    assert believer.node("n2").requested_of(fpga) == 0


def test_the_column_of_a_removed_resource_is_zero(believer):
    """The column is kept."""
    believer.put(make_node("n1", **{GPU: 8}), make_node("n1"))
    column = believer.table.resources.column(GPU)
    assert believer.node("n1").allocatable_of(column) == 0
    assert believer.table.allocatable[column, believer.node("n1").row] == 0


def test_a_reused_row_has_no_values_of_the_earlier_node(believer):
    """All columns are reset."""
    believer.put(make_node("n1", taints=["a:NoSchedule"], labels={"zone": "a"}, **{GPU: 4}))
    believer.put(make_pod("a", node="n1", requests={GPU: 1}, host_ports=[80]))
    zones = believer.table.label_column("zone")
    row = believer.node("n1").row
    believer.gone(make_node("n1"))
    assert (believer.table.count, believer.table.find("n1")) == (0, None)
    with pytest.raises(LookupError):
        believer.table.at(row)
    believer.put(make_node("n2"))
    node = believer.node("n2")
    assert node.row == row
    assert zones.ids[row] == -1
    assert believer.table.allocatable[:, row].tolist() == [4000, 16 * GIB, 0, 0]
    assert not believer.table.requested[:, row].any()
    assert not node.used_ports
    assert not believer.table.taint_ids[row]


def test_the_table_grows_beyond_its_first_capacity(believer):
    """With labels, pods and extended resources."""
    count = 2 * _CAPACITY_INITIAL + 3
    zones = believer.table.label_column("zone")
    believer.put(*(make_node(f"n{i}", labels={"zone": f"z{i % 3}"}) for i in range(count)))
    believer.put(*(make_pod(f"p{i}", node=f"n{i}", requests={GPU: i}) for i in range(count)))
    table = believer.table
    assert table.count == count
    assert count <= table.capacity <= count + count // 8
    assert [node.name for node in table.nodes()] == [f"n{i}" for i in range(count)]
    assert len(zones.ids) == table.capacity
    column = table.resources.column(GPU)
    assert table.requested[column, :count].tolist() == list(range(count))


def test_a_label_column_follows_its_nodes(believer):
    """Whether it is built before or after the nodes are added."""
    believer.put(make_node("n1", labels={"zone": "a"}), make_node("n2"))
    column = believer.table.label_column("zone")
    one, two = believer.node("n1").row, believer.node("n2").row
    assert [column.values[i] if i >= 0 else None for i in column.ids[[one, two]]] == ["a", None]
    believer.put(make_node("n1"), make_node("n2", labels={"zone": "a"}))
    assert [column.values[i] if i >= 0 else None for i in column.ids[[one, two]]] == [None, "a"]


def test_the_logs_contain_changed_nodes_and_pods(believer):
    """Each has its own log; a node that is set again counts as changed."""
    table = believer.table
    believer.put(make_node("n1"), make_node("n2"))
    nodes, pods = table.node_log.position, table.pod_log.position
    row = believer.node("n2").row
    believer.put(make_pod("a", node="n2"), make_node("n2", cpu="8"))
    believer.gone(make_pod("a"))
    believer.gone(make_node("n2"))
    assert table.node_log.since(nodes) == [row, row]
    assert table.pod_log.since(pods) == [row, row]


@pytest.mark.parametrize(
    ("change", "is_logged"),
    [
        ({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}, False),
        ({"labels": {"app": "x"}}, True),
        ({"priority": 7}, True),
        ({"terminating": True}, True),
        ({"status": {"startTime": "2026-01-01T00:00:00Z"}}, True),
        ({"requests": {"cpu": "2"}}, True),
    ],
    ids=["conditions", "labels", "priority", "deletion", "start", "requests"],
)
def test_a_changed_pod_is_logged_only_if_statuses_may_depend_on_it(believer, change, is_logged):
    """A status update causes no recomputation, but the newest version is kept."""
    believer.put(make_node("n1"), make_pod("a", node="n1"))
    before = believer.table.pod_log.position
    newer = make_pod("a", node="n1", **change)
    believer.put(newer)
    assert (believer.table.pod_log.position > before) == is_logged
    (known,) = believer.node("n1").pods.values()
    assert known.pod is newer


versions = st.builds(
    make_node,
    st.sampled_from(["n1", "n2"]),
    labels=st.sampled_from([{}, {"pool": "a"}, {"pool": "b"}]),
    taints=st.sampled_from([[], ["a:NoSchedule"]]),
    unschedulable=st.booleans(),
    cpu=st.sampled_from(["1", "2"]),
    images=st.sampled_from([{}, {"app:1": 5}]),
)


@given(st.lists(versions, min_size=1, max_size=6))
def test_only_the_last_version_of_a_node_counts(put):
    """Parts that do not change between two versions are not written again."""
    table, expected = NodeTable(), NodeTable()
    pools, wanted = table.label_column("pool"), expected.label_column("pool")
    for node in put:
        position = table.node_log.position
        assert table.put_node(node).node is node
        assert table.node_log.since(position) == [table.find(node.metadata.name).row]
    for node in {one.metadata.name: one for one in put}.values():
        row, other = table.find(node.metadata.name).row, expected.put_node(node).row
        assert bool(table.taint_ids[row]) == bool(table.at(row).node.spec.taints)
        for column in ("unschedulable", "allowed_pods"):
            assert getattr(table, column)[row] == getattr(expected, column)[other]
        for columns in ("allocatable", "offered"):
            found = getattr(table, columns)[:, row].tolist()
            assert found == getattr(expected, columns)[:, other].tolist()
        labels = node.metadata.labels
        assert table.at(row).labels == labels
        assert [*pools.values, None][pools.ids[row]] == labels.get("pool")
        assert [*wanted.values, None][wanted.ids[other]] == labels.get("pool")
        assert table.at(row).allocatable == expected.at(other).allocatable
    assert table.images.size_and_nodes("app:1") == expected.images.size_and_nodes("app:1")


def test_validate_finds_a_wrong_sum(new_believer):
    """Otherwise the other tests could not rely on it."""
    for spoil in (
        lambda table: np.add.at(table.requested, (0, 0), 1),
        lambda table: np.add.at(table.pod_count, 0, 1),
        lambda table: np.add.at(table.nonzero_memory, 0, -1),
        lambda table: table.at(0).requested.__setitem__(0, 5),
    ):
        one = new_believer()
        one.put(make_node("n1"), make_pod("a", node="n1", requests={"cpu": 1}))
        spoil(one.table)
        with pytest.raises(AssertionError):
            one.table.validate()
