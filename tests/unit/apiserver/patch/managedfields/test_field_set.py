"""Field sets: set operations, and the FieldsV1 format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.patch.managedfields.field_set import (
    LEAF,
    difference,
    from_fields_v1,
    intersection,
    paths,
    recursive_difference,
    to_fields_v1,
    union,
)
from fairlead.apiserver.patch.managedfields.path_element import SELF, key_element, value_element

STEPS = st.sampled_from(["f:a", "f:b", 'k:{"name":"c"}', 'v:"x"'])


def members(node, prefix=()):
    """The paths in a set."""
    found = {prefix} if SELF in node else set()
    for step, inner in node.items():
        if step != SELF:
            found |= members(inner, (*prefix, step))
    return found


def of_members(found):
    made = {}
    for path in found:
        node = LEAF
        for step in reversed(path):
            node = {step: node}
        made = union(made, node)
    return made


SETS = st.sets(st.lists(STEPS, min_size=1, max_size=3).map(tuple), max_size=6).map(of_members)


@given(SETS, SETS)
def test_union_difference_and_intersection_agree_with_sets_of_paths(one, other):
    assert members(union(one, other)) == members(one) | members(other)
    assert members(difference(one, other)) == members(one) - members(other)
    assert members(intersection(one, other)) == members(one) & members(other)


@given(SETS, SETS)
def test_recursive_difference_removes_whole_subtrees(one, roots):
    gone = members(roots)
    kept = {
        path
        for path in members(one)
        if not any(path[: length + 1] in gone for length in range(len(path)))
    }
    assert members(recursive_difference(one, roots)) == kept


@given(SETS)
def test_field_sets_round_trip_through_fields_v1(one):
    assert from_fields_v1(to_fields_v1(one)) == one


def test_a_field_set_is_written_as_fields_v1():
    node = {"f:a": {SELF: {}, "f:b": LEAF}, "f:c": LEAF}
    assert to_fields_v1(node) == {"f:a": {".": {}, "f:b": {}}, "f:c": {}}


def test_paths_are_printed_as_upstream_prints_them():
    steps = {"f:ports": {key_element({"protocol": "TCP", "containerPort": 80}): {"f:name": LEAF}}}
    node = {"f:spec": steps, "f:finalizers": {value_element("a/b"): LEAF}}
    assert list(paths(node)) == [
        '.finalizers[="a/b"]',
        '.spec.ports[containerPort=80,protocol="TCP"].name',
    ]


def test_numeric_keys_and_values_are_sorted_as_numbers():
    """Numeric keys and values are not sorted as texts."""
    steps = ['k:{"port":443}', 'k:{"port":80}', "v:10", "v:9", "f:a"]
    assert list(to_fields_v1(dict.fromkeys(steps, LEAF))) == [
        "f:a",
        'k:{"port":80}',
        'k:{"port":443}',
        "v:9",
        "v:10",
    ]


# The maximum depth for decoding; it is reached only if the stack is nearly empty, as in a test.
DEEP = 'k:{"a":1,"b":' + "[" * 250 + "]" * 250 + "}"


@pytest.mark.parametrize(
    "step", ["k:{", "k:[1]", "v:", "v:{", "i:x", "x", "k:" + "[" * 100_000, DEEP]
)
def test_an_invalid_path_element_is_refused(step):
    """An element that could not be printed in a conflict message is refused when it is read."""
    with pytest.raises(ValueError, match="is not a path element"):
        from_fields_v1({step: {}})


@pytest.mark.parametrize(
    ("written", "known"),
    [
        ({"v:1.0": {}}, {"v:1": {}}),
        ({'v:"<"': {}}, {'v:"\\u003c"': {}}),
        ({r'v:"\b\\b"': {}}, {r'v:"\u0008\\b"': {}}),
        ({'k:{"z":1, "a":2}': {}}, {'k:{"a":2,"z":1}': {}}),
        ({"f:a": {"x:of a later version": {}}}, {"f:a": {}}),
        ({".": {}, "f:a": {".": {}, "f:b": None}}, {"f:a": {".": {}, "f:b": {}}}),
        ({"v:10": {}, "v:9": {}}, {"v:9": {}, "v:10": {}}),
    ],
)
def test_path_elements_are_normalized_as_upstream_does(written, known):
    """All spellings of an element are written in the same form and order."""
    assert list(to_fields_v1(from_fields_v1(written)).items()) == list(known.items())
