"""Bodies that kubectl and Kubernetes' components sent as protobuf, as JSON.

Each line of the file is a body as it was recorded and the object in it, as read back by people.
"""

from __future__ import annotations

import base64
import gzip
import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.protobuf.decoding import MAGIC, _numbers, decode
from fairlead.apiserver.protobuf.wire import bytes_field, number_field
from fairlead.apiserver.schema.model import schema_of, schemas

FILE = Path(__file__).with_name("recorded_bodies.jsonl.gz")
BODIES = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
DEPLOYMENT = next(row for row in BODIES if row["kind"] == "Deployment")


def field(number, value):
    """A field of bytes, or of a number below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def enveloped(api_version, kind, message=b""):
    named = field(1, api_version) + field(2, kind)
    return MAGIC + field(1, named) + field(2, message)


@pytest.mark.parametrize("row", BODIES, ids=lambda row: row["kind"])
def test_a_recorded_body(row):
    assert decode(base64.b64decode(row["body"])) == row["object"]


def test_many_kinds_are_recorded():
    assert len({row["kind"] for row in BODIES}) > 25


def test_texts_numbers_and_maps_are_read():
    metadata = field(1, b"a") + field(11, field(1, b"k") + field(2, b"v"))
    assert decode(enveloped(b"v1", b"ConfigMap", field(1, metadata))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"k": "v"}},
    }


def test_a_message_that_json_does_not_nest_is_part_of_its_owner():
    source = field(2, field(6, field(1, b"s")))  # volumeSource, secret, secretName
    volume = field(1, b"vol") + source
    body = enveloped(b"v1", b"Pod", field(2, field(1, volume)))
    assert decode(body)["spec"]["volumes"] == [{"name": "vol", "secret": {"secretName": "s"}}]


def test_zero_is_kept_where_it_was_set_and_dropped_where_it_says_nothing():
    spec = field(1, 0) + field(5, 0)  # replicas, held by pointer; minReadySeconds, by value
    assert "minReadySeconds" not in decode(enveloped(b"apps/v1", b"Deployment", field(2, spec)))
    assert decode(enveloped(b"apps/v1", b"Deployment", field(2, spec)))["spec"]["replicas"] == 0


def test_an_instant_that_was_never_set_is_none():
    metadata = field(1, b"a") + field(8, b"")
    assert (
        "creationTimestamp"
        not in decode(enveloped(b"v1", b"ConfigMap", field(1, metadata)))["metadata"]
    )


def test_unknown_fields_are_passed_over():
    assert decode(enveloped(b"v1", b"ConfigMap", field(15, b"later"))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {},
    }


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\x00garbage",
        enveloped(b"v1", b"ConfigMap", field(1, 5)),
        enveloped(b"v1", b"ConfigMap", b"\x0a\x7fshort"),
        enveloped(b"v1", b"ConfigMap", field(1, field(1, b"\xff"))),
        MAGIC + field(1, 5),
    ],
)
def test_what_is_no_message_is_refused(body):
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert refused.value.code == 400


def test_a_kind_without_numbers_is_refused_by_name():
    with pytest.raises(ApiError, match=r"no protobuf is known of x\.io/v1, Kind=Widget") as refused:
        decode(enveloped(b"x.io/v1", b"Widget"))
    assert refused.value.code == 415


def test_no_message_contains_itself():
    """Hence nothing can be nested deeper than the tables are."""
    assert all(depth(schema) < 40 for kind in schemas().kinds if (schema := of_kind(kind)))


def of_kind(name):
    api_version, _, kind = name.rpartition("/")
    schema = schema_of(api_version, kind)
    return schema if schema and schema.definition in _numbers() else None


def depth(schema):
    inner = [field.schema for field in schema.fields.values()]
    return 1 + max(map(depth, [*inner, *filter(None, [schema.items])]), default=0)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_bodies_are_refused_or_read_but_never_fail(noise, at):
    """Whatever comes, it is an object or an ApiError."""
    whole = base64.b64decode(DEPLOYMENT["body"])
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with suppress(ApiError):
        assert decode(damaged)["kind"]


def number_of(kind, name):
    """The number of a field."""
    numbers = next(row for key, row in _numbers().items() if key.endswith(f".{kind}"))
    return next(int(number) for number, field in numbers.items() if field == name)


@pytest.mark.parametrize(
    "instant", [number_field(1, 2**62), bytes_field(1, b"a"), bytes_field(2, b"a")]
)
def test_instants_that_are_none(instant):
    """Beyond the year 9999, and a text in the place of a number."""
    metadata = bytes_field(1, bytes_field(number_of("ObjectMeta", "creationTimestamp"), instant))
    with pytest.raises(ApiError) as caught:
        decode(enveloped(b"v1", b"ConfigMap", metadata))
    assert caught.value.code == 400
