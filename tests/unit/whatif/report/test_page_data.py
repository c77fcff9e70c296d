"""Packed report data keeps all displayed values and stores repeated values once."""

from __future__ import annotations

import json
import math

from hypothesis import given
from hypothesis import strategies as st

from fairlead.whatif.report.columns import column, table
from fairlead.whatif.report.page_data import TABLES, packed

scalars = st.none() | st.integers() | st.text(max_size=4)


def unpacked(packed_column):
    """Return the column as static/data.js unpacks it."""
    if isinstance(packed_column, list):
        return packed_column
    return [packed_column["of"][at] for at in packed_column["at"]]


@given(st.lists(scalars) | st.lists(st.sampled_from(["node(s) had taints", None, 7])))
def test_a_column_survives_packing_and_unpacking(values):
    """An unpacked column equals the original one."""
    assert unpacked(column(values)) == values


def test_repeated_values_are_interned():
    """Eight equal reasons are stored once."""
    assert column(["Insufficient cpu"] * 8) == {"of": ["Insufficient cpu"], "at": [0] * 8}


def test_distinct_values_are_not_interned():
    """An index of distinct values would only take space."""
    names = [f"pod-{at}" for at in range(20)]
    assert column(names) == names


def test_numbers_that_json_cannot_represent_become_null():
    """NaN and infinities are shown as missing; costs keep the four places of the JSON."""
    assert column([math.nan, math.inf, -math.inf, 0.73449]) == [None, None, None, 0.7345]


def test_missing_fields_are_null():
    """A row that lacks a field has None there."""
    rows = [{"pod": "a"}, {"pod": "b", "reason": "r"}]
    assert table(rows, ("pod", "reason")) == {
        "length": 2,
        "columns": {"pod": ["a", "b"], "reason": [None, "r"]},
    }


def test_only_kind_and_title_are_needed():
    """All other fields have an empty default."""
    page = packed({"kind": "simulate", "title": "t"})
    assert page["nodes"]["length"] == 0
    assert page["timeline"] == {"recorded": 0, "t_s": [], "series": []}
    assert {name: page[name]["length"] for name in TABLES} == dict.fromkeys(TABLES, 0)


def test_pods_of_nodes_stay_in_order(small):
    """The counts per node split the columns of pods by node."""
    pods = packed(small)["nodes"]["pods"]
    names, first = unpacked(pods["name"]), 0
    for node, amount in zip(small["nodes"], unpacked(pods["count"]), strict=True):
        assert names[first : first + amount] == [pod[0] for pod in node["pods"]]
        first += amount
    assert first == len(names)


def test_equal_requests_are_one_shape(large):
    """Eight thousand pods of openb's size have nine shapes."""
    pods = packed(large)["nodes"]["pods"]
    assert len(pods["shapes"]) == 9
    amounts = [pods["shapes"][shape] for shape in pods["shape"]]
    assert amounts == [pod[2] for node in large["nodes"] for pod in node["pods"]]


def test_a_deleted_node_is_not_cordoned():
    """It keeps its last row, which says that it was cordoned when it was deleted."""
    deleted = {"name": "a", "unschedulable": True}
    nodes = [{"name": "b", "unschedulable": True}, {"name": "c"}]
    history = {"deleted": [deleted], "placements": [], "statuses": []}
    page = packed({"kind": "simulate", "title": "t", "nodes": nodes, "history": history})["nodes"]
    assert page["name"] == ["b", "c", "a"]
    assert (page["absent"], page["unschedulable"]) == ([2], [0])


def test_seed_is_exact():
    """A seed above 2^53 has all of its digits on the page."""
    page = packed({"kind": "simulate", "title": "t", "seed": 2**70})
    assert json.loads(json.dumps(page))["seed"] == "1180591620717411303424"
