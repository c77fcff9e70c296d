"""Compiled readers return the same as the general decoder, or raise UnusualError."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.schema.compiled_reader import UnusualError, reader_of
from fairlead.apiserver.schema.decoder import walked
from fairlead.apiserver.schema.gojson.json_text import parse_json
from fairlead.apiserver.schema.model import Type, schema_of
from fairlead.apiserver.schema.scalar import TypeMismatchError

POD = schema_of("v1", "Pod")
KINDS = {
    "Pod": POD,
    "Secret": schema_of("v1", "Secret"),
    "Lease": schema_of("coordination.k8s.io/v1", "Lease"),
    "Deployment": schema_of("apps/v1", "Deployment"),
    "CustomResourceDefinition": schema_of("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
}
TEXTS = st.sampled_from(
    ["", "a", "1", "1500m", "0.5Gi", "YQ==", "2026-01-01T00:00:00+01:00", "2026-01-01T00:00:00.5Z"]
)
ODD = st.sampled_from([None, True, 0, 1, -1, 2**31, 2**63, 1.5, {}, [], {"a": None}, [None]])


@st.composite
def values(draw, schema, depth=0):
    """Strategy for values of this type; sometimes a value of another type."""
    if draw(st.integers(0, 20)) == 0:
        return draw(ODD)
    if schema.type is Type.OBJECT:
        names = sorted(schema.fields)
        chosen = draw(st.lists(st.sampled_from([*names, "other"]), max_size=4, unique=True))
        inner = {name: schema.fields[name].schema for name in chosen if name in schema.fields}
        made = {name: draw(values(one, depth + 1)) for name, one in inner.items() if depth < 6}
        return {**made, "other": 1} if "other" in chosen and depth % 3 == 0 else made
    if schema.type is Type.LIST:
        return draw(st.lists(values(schema.items, depth + 1), max_size=2)) if depth < 6 else []
    if schema.type is Type.MAP:
        return draw(st.dictionaries(st.just("a"), values(schema.items, depth + 1), max_size=1))
    return draw(st.one_of(TEXTS, st.booleans(), st.integers(-3, 2**40)))


def outcome(read, value):
    try:
        return read(value)
    except TypeMismatchError as cause:
        return str(cause)


@pytest.mark.parametrize("kind", KINDS)
@given(st.data())
def test_a_reader_returns_the_result_of_the_general_decoder_or_raises(kind, data):
    schema = KINDS[kind]
    value = data.draw(values(schema))
    try:
        read = reader_of(schema)(value)
    except UnusualError:
        return
    made, notes = outcome(lambda sent: walked(schema, sent), value)
    assert (read, notes) == (made, [])
    assert list(read) == list(made)


def test_an_ordinary_pod_is_read_by_the_compiled_reader():
    container = {
        "name": "c",
        "image": "web",
        "ports": [{"containerPort": 80, "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "0.5", "memory": "1Gi"}, "limits": {"cpu": 1}},
        "livenessProbe": {"httpGet": {"path": "/", "port": "http"}},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {"a": "b"}, "creationTimestamp": None},
        "spec": {"containers": [container], "nodeSelector": {}},
    }
    assert reader_of(POD)(pod)["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "500m"


@pytest.mark.parametrize(
    "text",
    ['{"spec":{"nodeName":"a","nodeName":"b"}}', '{"other":1}', '{"spec":{"containers":[null]}}'],
)
def test_objects_with_warnings_are_left_to_the_general_decoder(text):
    with pytest.raises(UnusualError):
        reader_of(POD)(parse_json(text))
