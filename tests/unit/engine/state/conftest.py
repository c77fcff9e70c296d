"""The content of a node table as plain values, to compare it before and after a change."""

from __future__ import annotations

import numpy as np
import pytest

from fairlead.engine.core.stimulus import ObjectChanged, ObjectDeleted
from fairlead.engine.state.cluster import Cluster
from fairlead.engine.state.pod_info import PodInfo


def dump(table):
    """Return all state that a fork must restore; the order of arrival is left out."""
    pod_index = table.pod_index
    return {
        "columns": [columns_in_use(wide) for wide in (table.allocatable, table.requested)],
        "flat": [column.tolist() for column in table._columns.flat()],
        "labels": {key: column.ids.tolist() for key, column in table._label_columns.items()},
        "nodes": {node.row: dump_node(node) for node in table.nodes()},
        "alike": {
            key: dict(pods.where.rows)
            for key, pods in pod_index._pod_class.items()
            if pods.where.rows
        },
        "terms": {key: dict(t.where.rows) for key, t in pod_index._terms.items() if t.where.rows},
        "affine": (pod_index.repelling, pod_index.attracting),
        "counts": [(c.refresh().sums.tolist(), c.pods) for c in pod_index._watches_of],
    }


def columns_in_use(wide):
    """Return the columns by resource, without those that are 0 on all nodes."""
    return {number: column.tolist() for number, column in enumerate(wide) if column.any()}


def dump_node(node):
    """Return the integers and sets of one row; trailing zeros of lists are left out."""
    requested = {column: amount for column, amount in enumerate(node.requested) if amount}
    return {
        "node": node.node,
        "pods": {key: (pod.pod, pod.shape.id) for key, pod in node.pods.items()},
        "requested": requested,
        "nonzero": (node.nonzero_cpu, node.nonzero_memory),
        "ports": sorted(node.used_ports),
    }


def by_name(table):
    """Return the state of each node, without its row and independent of the order of changes."""
    table.widen()
    resources = table.resources.names
    shown = {}
    for node in table.nodes():
        row = node.row
        requested = dict(zip(resources, table.requested[:, row].tolist(), strict=True))
        allocatable = dict(zip(resources, table.allocatable[:, row].tolist(), strict=True))
        shown[node.name] = {
            "node": node.node,
            "pods": sorted(
                ((p.key, p.pod) for p in node.pods.values()), key=lambda entry: entry[0]
            ),
            "requested": {name: amount for name, amount in requested.items() if amount},
            "allocatable": {name: amount for name, amount in allocatable.items() if amount},
            "flat": [column[row].item() for column in table._columns.flat()],
            "images": {name: table.images.size_and_nodes(name)[1] for name in node.image_sizes},
        }
    return shown


def check(table):
    """Check that columns, integers, labels and unused rows agree. Raises AssertionError."""
    table.validate()
    alive = [node.row for node in table.nodes()]
    assert table.count == len(alive)
    assert np.flatnonzero(table.alive).tolist() == alive
    dead = ~table.alive
    for column in (table.allocatable, table.requested):
        assert not column[:, dead].any()
    for column in table._columns.flat():
        assert not column[dead].any()
    for node in table.nodes():
        assert table.find(node.name) is table.at(node.row) is node
        for column, row in enumerate(table.allocatable[:, node.row].tolist()):
            assert node.allocatable_of(column) == row
        wanted = {port for pod in node.pods.values() for port in pod.shape.host_ports}
        assert set(node.used_ports) <= wanted
    for key, column in table._label_columns.items():
        values = {node.row: node.labels.get(key) for node in table.nodes()}
        for row, value_id in enumerate(column.ids.tolist()):
            assert values.get(row) == (column.values[value_id] if value_id >= 0 else None)


class Believer:
    """A cluster with short methods that add and remove objects."""

    def __init__(self):
        self.cluster = Cluster()

    @property
    def table(self):
        return self.cluster.table

    def put(self, *objects):
        """Add or update objects; return the changes."""
        changes = []
        for one in objects:
            self.cluster.apply(ObjectChanged(one))
            changes += self.cluster.changes
        return changes

    def gone(self, *objects):
        changes = []
        for one in objects:
            self.cluster.apply(ObjectDeleted(one))
            changes += self.cluster.changes
        return changes

    def info(self, pod):
        """Return the PodInfo that the cluster would have for `pod`."""
        return PodInfo(pod, self.cluster.shapes.shape_of(pod))

    def node(self, name):
        return self.table.find(name)

    def known(self, key):
        return self.cluster.pods[key]

    def on(self, name):
        """Return the keys of the pods that are counted on a node."""
        return sorted(pod.key for pod in self.table.find(name).pods.values())

    def requested(self, name, resource="cpu"):
        return self.table.find(name).requested_of(self.table.resources.column(resource))


@pytest.fixture
def believer():
    """An empty cluster; its sums are checked after the test."""
    one = Believer()
    yield one
    check(one.table)


@pytest.fixture(scope="session")
def new_believer():
    return Believer


@pytest.fixture(name="dump", scope="session")
def _dump():
    return dump


@pytest.fixture(name="by_name", scope="session")
def _by_name():
    return by_name


@pytest.fixture(name="check", scope="session")
def _check():
    return check
