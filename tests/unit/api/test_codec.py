"""Decoding of JSON values into views, and refusals."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.api.codec import DecodeError, decode, decode_stored, drop_nulls, without_nulls


@pytest.mark.parametrize("value", [None, 1, "text", [], {"apiVersion": [], "kind": {}}])
def test_a_value_that_is_not_an_object_is_refused(value):
    with pytest.raises(DecodeError):
        decode(value)


@pytest.mark.parametrize(
    ("part", "field"),
    [
        ({"metadata": {"name": "a", "labels": {"x": "1", "y": 1}}}, "metadata.labels[y]"),
        (
            {"spec": {"containers": [{}, {"resources": {"requests": {"cpu": [1]}}}]}},
            "spec.containers[1].resources.requests[cpu]",
        ),
        ({"metadata": {"name": "a", "labels": ["x"]}}, "metadata.labels"),
    ],
    ids=["a label", "an amount in a list", "no map"],
)
def test_the_error_of_a_map_names_the_key(part, field):
    with pytest.raises(DecodeError) as refusal:
        decode({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, **part})
    assert refusal.value.field == field


def test_the_error_of_a_custom_resource_names_its_kind():
    meta = {"name": "w", "namespace": "shop", "labels": {"app": 5}}
    with pytest.raises(DecodeError) as refusal:
        decode({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta})
    assert str(refusal.value) == "Widget shop/w: metadata.labels[app]: Expected `str`, got `int`"


WORDS = st.sampled_from(["a", "null", ":null", '":null', '"a":null', ',"a":null', "x\\", '\\"', ""])
VALUES = st.recursive(
    st.none() | WORDS | st.integers(-3, 3) | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(WORDS, VALUES), VALUES)
def test_a_stored_object_is_decoded_as_without_nulls(labels, spec):
    """Texts in the object may look like nulls."""
    meta = {"name": "a", "labels": labels, "uid": None, "managedFields": [{"time": None}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"nodeSelector": spec}}
    other = {"apiVersion": "example.com/v1", "kind": "Any", "metadata": {"name": "b"}, "spec": spec}
    for obj in (pod, other):
        assert outcome(decode_stored, obj) == outcome(lambda one: decode(without_nulls(one)), obj)


def outcome(read, obj):
    try:
        return read(obj)
    except DecodeError as refusal:
        return str(refusal)


@given(st.dictionaries(WORDS, VALUES))
def test_drop_nulls_and_without_nulls_give_equal_results(value):
    """The members keep their order."""
    dropped = copy.deepcopy(value)
    drop_nulls(dropped)
    assert dropped == without_nulls(value)
    assert list(dropped) == list(without_nulls(value))
