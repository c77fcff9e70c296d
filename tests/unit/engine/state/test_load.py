"""Loading a cluster at once gives the same state as observing its objects one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.api.objects import Node
from fairlead.engine.core.stimulus import ObjectChanged, ObjectsLoaded
from fairlead.engine.state.cluster import Cluster, PodsLoaded
from fairlead.testing.builders import make_budget, make_node, make_pod

AFFINITY = {
    "podAntiAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
        ]
    }
}
RESIZES: tuple[dict[str, object], ...] = (
    {},
    {"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": "3"}}}]},
    {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]},
)


def pod(name, where, cpu, app, extra, resize):
    node, phase = where
    return make_pod(
        name,
        node=node,
        labels={"app": app},
        requests={"cpu": cpu, **({"example.com/gpu": 1} if extra == "gpu" else {})},
        host_ports=(80,) if extra == "port" else (),
        terminating=extra == "ends",
        spec={"affinity": AFFINITY} if extra == "affinity" else {},
        status={"phase": phase, **resize},
    )


pods = st.builds(
    pod,
    st.sampled_from(("p", "q", "r", "s")),
    st.tuples(
        st.sampled_from(("a", "b", "absent", "")), st.sampled_from(("Running", "Running", "Failed"))
    ),
    st.sampled_from(("1", "2")),
    st.sampled_from(("a", "b")),
    st.sampled_from(("", "", "gpu", "port", "affinity", "ends")),
    st.sampled_from(RESIZES),
)
others = st.sampled_from(
    (make_node("a"), make_node("b"), make_budget("p", {"app": "a"}, allowed=1))
)


def state(cluster):
    """Return what plugins read, by name; a shape is named after the first pod that has it."""
    shapes = {}
    for key, one in cluster.pods.items():
        shapes.setdefault(one.shape, key)
    columns = range(len(cluster.table.resources))
    nodes = [
        (one.name, list(one.pods), [one.requested_of(column) for column in columns],
         one.nonzero_cpu, one.nonzero_memory, list(one.used_ports))
        for one in cluster.table.nodes()
    ]  # fmt: skip
    table = cluster.table
    requested = table.requested[:, : table.size]  # columns of zeros may be missing
    columns = [requested[requested.any(axis=1)], table.nonzero[:, : table.size]]
    columns += [table.pod_count[: table.size]]
    pods = [(key, shapes[one.shape], one.shape.id) for key, one in cluster.pods.items()]
    return pods, nodes, [column.tolist() for column in columns]


@settings(max_examples=300)
@given(st.lists(st.one_of(pods, pods, others), max_size=10))
def test_loading_at_once_equals_observing_one_by_one(objects):
    at_once, one_by_one = Cluster(), Cluster()
    at_once.apply(ObjectsLoaded(objects))
    changes = []
    for one in sorted(objects, key=lambda one: not isinstance(one, Node)):
        one_by_one.apply(ObjectChanged(one))
        changes += one_by_one.changes
    assert state(at_once) == state(one_by_one)
    assert [_of(one) for one in _each(at_once.changes)] == [_of(one) for one in changes]
    for cluster in (at_once, one_by_one):
        cluster.table.validate()
    rows = at_once.table.pod_log.since(0)
    assert set(rows) == set(one_by_one.table.pod_log.since(0))
    assert np.array_equal(at_once.table.alive, one_by_one.table.alive)


def _each(changes):
    for change in changes:
        yield from change.changes() if isinstance(change, PodsLoaded) else (change,)


def _of(change):
    old, new = change.old, change.new
    return type(change), getattr(old, "pod", old), getattr(new, "pod", new)
