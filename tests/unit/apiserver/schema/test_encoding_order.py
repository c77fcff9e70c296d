"""The order of encoded fields, recorded from upstream 1.36.4."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.schema.encoding_order import ordered, ordered_by_name
from fairlead.apiserver.schema.model import ANYTHING, schema_of

POD = schema_of("v1", "Pod") or ANYTHING
SHUFFLED = {
    "spec": {
        "nodeName": "n",
        "containers": [
            {"image": "i", "name": "c", "resources": {"limits": {"memory": 1, "cpu": 2}}}
        ],
        "nodeSelector": {"b": "1", "a": "2"},
    },
    "metadata": {"labels": {"z": "1", "a": "2"}, "uid": "u", "namespace": "n", "name": "p"},
    "apiVersion": "v1",
    "kind": "Pod",
}


def names(value):
    """Return the members at every depth, in order."""
    if isinstance(value, dict):
        return [(key, names(item)) for key, item in value.items()]
    return list(map(names, value)) if isinstance(value, list) else value


def test_fields_are_in_declaration_order_and_keys_are_sorted():
    """Fields of a type are in declaration order, and the keys of a map are sorted."""
    made = ordered(POD, SHUFFLED)
    assert made == SHUFFLED
    assert list(made) == ["kind", "apiVersion", "metadata", "spec"]
    assert list(made["metadata"]) == ["name", "namespace", "uid", "labels"]
    assert list(made["metadata"]["labels"]) == ["a", "z"]
    assert list(made["spec"]) == ["containers", "nodeSelector", "nodeName"]
    assert list(made["spec"]["containers"][0]) == ["name", "image", "resources"]
    assert list(made["spec"]["containers"][0]["resources"]["limits"]) == ["cpu", "memory"]


def test_unknown_fields_come_last():
    """An unknown field is not dropped."""
    assert list(ordered(POD, {"other": 1, "kind": "Pod"})) == ["kind", "other"]


def test_without_a_schema_all_keys_are_sorted():
    """Custom resources without a schema are written in this way."""
    made = ordered_by_name({"kind": "W", "b": [{"d": 1, "c": 2}], "apiVersion": "e/v1"})
    assert names(made) == [("apiVersion", "e/v1"), ("b", [[("c", 2), ("d", 1)]]), ("kind", "W")]


@pytest.mark.parametrize("order", [ordered_by_name, lambda value: ordered(POD, value)])
def test_an_ordered_object_is_returned_unchanged(order):
    """An object that is already in order is not copied."""
    made = order(SHUFFLED)
    assert order(made) is made


JSON = st.recursive(
    st.integers() | st.text(max_size=3) | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(JSON)
def test_order_changes_no_value(value):
    """This also holds for values that are not valid pods."""
    assert ordered_by_name(value) == value
    assert ordered(POD, {"metadata": value, "spec": {"containers": value}}) == {
        "metadata": value,
        "spec": {"containers": value},
    }


@given(st.permutations(["metadata", "spec", "status"]), st.booleans(), st.booleans())
def test_reuse_of_the_previous_version_does_not_change_the_order(order, keeps_spec, has_conditions):
    """Members shared with the previous version are not sorted again, because they are in order."""
    before = ordered(POD, SHUFFLED | {"status": {"phase": "Pending", "conditions": []}})
    conditions = [{"status": "True", "type": "Ready"}]
    members = {
        "metadata": {"labels": before["metadata"]["labels"], "name": "p", "generation": 2},
        "spec": before["spec"] if keeps_spec else SHUFFLED["spec"] | {"priority": 1},
        "status": {"phase": "Running", "conditions": conditions if has_conditions else []},
    }
    new = {key: members[key] for key in order}
    assert names(ordered(POD, new, before)) == names(ordered(POD, new))
