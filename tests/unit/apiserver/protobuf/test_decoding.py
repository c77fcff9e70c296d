"""Decoding of protobuf bodies that kubectl and Kubernetes components sent.

Each line of the first file has a recorded body, and its object as JSON, checked by hand. The second
file has every kind twice, with all fields and without fields, as the protobuf and the JSON that
upstream 1.36.4 encoded.
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.protobuf.decoder import MAGIC, decode, numbers
from fairlead.apiserver.protobuf.wire import bytes_field, number_field, varint
from fairlead.apiserver.schema.model import schema_of, schemas


def rows(name):
    content = gzip.decompress(Path(__file__).with_name(name).read_bytes())
    return [json.loads(line) for line in content.splitlines()]


BODIES = rows("recorded_bodies.jsonl.gz")
FILLED = rows("filled_bodies.jsonl.gz")
DEPLOYMENT = next(row for row in BODIES if row["kind"] == "Deployment")


def field(number, value):
    """Return an encoded field: bytes, or a number below 128."""
    if isinstance(value, int):
        return bytes([number << 3, value])
    return bytes([number << 3 | 2, len(value)]) + value


def enveloped(api_version, kind, message=b""):
    named = field(1, api_version) + field(2, kind)
    return MAGIC + field(1, named) + field(2, message)


@pytest.mark.parametrize("row", BODIES, ids=lambda row: row["kind"])
def test_a_recorded_body_is_decoded(row):
    assert decode(base64.b64decode(row["body"])) == row["object"]


def test_many_kinds_are_recorded():
    assert len({row["kind"] for row in BODIES}) > 25


@pytest.mark.parametrize(
    "row", FILLED, ids=lambda row: f"{row['object']['apiVersion']}-{row['object']['kind']}"
)
def test_every_field_of_every_kind_is_decoded(row):
    assert decode(base64.b64decode(row["body"])) == row["object"]


def test_every_kind_is_recorded_with_all_fields():
    assert len({(row["object"]["apiVersion"], row["object"]["kind"]) for row in FILLED}) == 71


def test_strings_numbers_and_maps_are_decoded():
    metadata = field(1, b"a") + field(11, field(1, b"k") + field(2, b"v"))
    assert decode(enveloped(b"v1", b"ConfigMap", field(1, metadata))) == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "labels": {"k": "v"}},
    }


def test_embedded_messages_are_inlined_as_in_json():
    source = field(2, field(6, field(1, b"s")))  # volumeSource, secret, secretName
    volume = field(1, b"vol") + source
    body = enveloped(b"v1", b"Pod", field(2, field(1, volume)))
    assert decode(body)["spec"]["volumes"] == [{"name": "vol", "secret": {"secretName": "s"}}]


def test_a_zero_is_kept_in_optional_fields_and_dropped_in_others():
    spec = field(1, 0) + field(5, 0)  # replicas, held by pointer; minReadySeconds, by value
    assert "minReadySeconds" not in decode(enveloped(b"apps/v1", b"Deployment", field(2, spec)))
    assert decode(enveloped(b"apps/v1", b"Deployment", field(2, spec)))["spec"]["replicas"] == 0


def test_an_empty_timestamp_is_omitted():
    metadata = field(1, b"a") + field(8, b"")
    assert (
        "creationTimestamp"
        not in decode(enveloped(b"v1", b"ConfigMap", field(1, metadata)))["metadata"]
    )


def test_unknown_fields_are_skipped():
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
        MAGIC + field(1, 5),
    ],
)
def test_an_invalid_message_is_refused(body):
    with pytest.raises(ApiError) as refused:
        decode(body)
    assert refused.value.code == 400


# Upstream 1.36.4's messages, without the common prefix of all refusals of an envelope.
UNREAD = [
    (b"", "empty data"),
    (MAGIC, "empty body"),
    (
        b"{}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    ),
    (MAGIC + b"\x0a", "unexpected EOF"),
    (MAGIC + b"\x00\x01", "proto: Unknown: illegal tag 0 (wire type 0)"),
    (MAGIC + b"\x0c", "proto: Unknown: wiretype end group for non-group"),
    (MAGIC + b"\x08\x01", "proto: wrong wireType = 0 for field TypeMeta"),
    (MAGIC + b"\x2f", "proto: illegal wireType 7"),
    (MAGIC + b"\xff" * 11, "proto: integer overflow"),
]


@pytest.mark.parametrize(("body", "why"), UNREAD)
def test_an_invalid_envelope_is_refused_with_upstreams_message(body, why):
    with pytest.raises(ApiError, match=re.escape(f"is unrecognized: {why} (")) as refused:
        decode(body)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"\x0a\x05a", "unexpected EOF"),
        (b"\x0a" + varint(1 << 63), "proto: negative length found during unmarshaling"),
        (b"\x08\x01", "proto: wrong wireType = 0 for field ObjectMeta"),
        (field(1, b"\x08\x01"), "proto: wrong wireType = 0 for field Name"),
        (field(1, b"\x2b\x01"), "proto: wrong wireType = 3 for field UID"),
        (field(1, b"\x0c"), "proto: ObjectMeta: wiretype end group for non-group"),
        (field(1, field(8, b"\x0a\x01a")), "proto: wrong wireType = 2 for field Seconds"),
        (b"\x4b\x08\x01", "unexpected EOF"),  # a group without an end
    ],
)
def test_an_invalid_object_is_refused_with_upstreams_message(raw, why):
    with pytest.raises(ApiError) as refused:
        decode(enveloped(b"v1", b"ConfigMap", raw))
    expected = f'ConfigMap in version "v1" cannot be handled as a ConfigMap: {why}'
    assert (refused.value.code, refused.value.message) == (400, expected)


@pytest.mark.parametrize(
    ("raw", "metadata"),
    [
        (field(1, field(1, b"x")) + field(1, field(3, b"ns")), {"name": "x", "namespace": "ns"}),
        (field(1, field(1, b"\xe2\x9c-\xff")), {"name": "\ufffd\ufffd-\ufffd"}),
        (field(1, field(8, b"\x08\x00")), {"creationTimestamp": "1970-01-01T00:00:00Z"}),
        (
            field(1, field(8, b"\x08\x05\x10\xc0\x84\x3d")),
            {"creationTimestamp": "1970-01-01T00:00:05Z"},
        ),
        (b"\x4b\x08\x01\x4c" + field(1, field(1, b"x")), {"name": "x"}),  # a skipped group
    ],
)
def test_unusual_encodings_are_decoded_as_upstream_does(raw, metadata):
    assert decode(enveloped(b"v1", b"ConfigMap", raw))["metadata"] == metadata


def test_fields_are_in_declaration_order():
    """Refusals report fields in this order, not in the order of their numbers."""
    owner = field(1, b"ReplicaSet") + field(3, b"a") + field(4, b"u") + field(5, b"apps/v1")
    metadata = field(1, field(13, owner))
    (reference,) = decode(enveloped(b"v1", b"ConfigMap", metadata))["metadata"]["ownerReferences"]
    assert list(reference) == ["apiVersion", "kind", "name", "uid"]


def test_packed_numbers_are_decoded_and_truncated_to_their_size():
    def read(fs_group, groups):
        context = field(5, fs_group) if isinstance(fs_group, int) else b""
        spec = field(14, context + groups)  # securityContext
        return decode(enveloped(b"v1", b"Pod", field(2, spec)))["spec"]["securityContext"]

    assert read(1, field(4, b"\x01\x02\x03")) == {"fsGroup": 1, "supplementalGroups": [1, 2, 3]}
    assert read(1, field(4, 7) + field(4, 8))["supplementalGroups"] == [7, 8]
    replicas = field(2, bytes([1 << 3]) + varint((1 << 32) + 5))
    assert decode(enveloped(b"apps/v1", b"Deployment", replicas))["spec"]["replicas"] == 5


def test_a_kind_without_field_numbers_is_decoded_to_its_type_only():
    """A client that expects another kind refuses the object, as upstream does."""
    expected = {"apiVersion": "x.io/v1", "kind": "Widget"}
    assert decode(enveloped(b"x.io/v1", b"Widget", field(1, field(1, b"a")))) == expected


@pytest.mark.parametrize(
    ("said", "is_of"),
    [
        ((b"", b""), ("apps/v1", "Deployment")),
        ((b"", b"Scale"), ("apps/v1", "Scale")),
        ((b"v1", b"Pod"), ("v1", "Pod")),
        ((b"/v1", b"Pod"), ("v1", "Pod")),
        ((b"a/b/c", b"Deployment"), ("apps/v1", "Deployment")),
        ((b"apps/", b"DaemonSet"), ("apps/v1", "DaemonSet")),
    ],
)
def test_a_missing_api_version_or_kind_is_taken_from_the_path(said, is_of):
    decoded = decode(enveloped(*said), "apps/v1", "Deployment")
    assert (decoded["apiVersion"], decoded["kind"]) == is_of


def test_only_json_schemas_are_recursive():
    """So no other kind can be nested more deeply than the tables allow."""
    assert all(depth(schema) < 40 for kind in schemas().kinds if (schema := of_kind(kind)))


@pytest.mark.parametrize("levels", [200, 1_000, 20_000])
def test_schemas_that_are_nested_too_deeply_are_refused(levels):
    schema = b""
    for _ in range(levels):
        schema = message((28, schema))  # the field `not`
    version = message((1, b"v1"), (4, message((1, schema))))
    body = message((2, message((1, b"g"), (7, version))))
    kind = message((1, b"apiextensions.k8s.io/v1"), (2, b"CustomResourceDefinition"))
    with pytest.raises(ApiError) as refused:
        decode(MAGIC + message((1, kind), (2, body)))
    assert (refused.value.code, "exceeded max depth" in refused.value.message) == (400, True)


def of_kind(name):
    api_version, _, kind = name.rpartition("/")
    schema = schema_of(api_version, kind)
    return schema if schema and schema.definition in numbers() else None


def depth(schema):
    if schema.definition.endswith(".JSONSchemaProps"):
        return 1
    inner = [field.schema for field in schema.fields.values()]
    return 1 + max(map(depth, [*inner, *filter(None, [schema.items])]), default=0)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_damaged_bodies_are_decoded_or_refused_without_other_errors(noise, at):
    """Every result is an object or an ApiError."""
    whole = base64.b64decode(DEPLOYMENT["body"])
    damaged = whole[:at] + noise + whole[at + len(noise) :]
    with suppress(ApiError):
        assert decode(damaged)["kind"]


def number_of(kind, name):
    """Return the number of a field."""
    named = next(row for key, row in numbers().items() if key.endswith(f".{kind}"))
    return next(int(number) for number, field in named.items() if field == name)


@pytest.mark.parametrize(
    "instant", [number_field(1, 2**62), bytes_field(1, b"a"), bytes_field(2, b"a")]
)
def test_invalid_timestamps_are_refused(instant):
    """A timestamp after the year 9999, and a text instead of a number."""
    metadata = bytes_field(1, bytes_field(number_of("ObjectMeta", "creationTimestamp"), instant))
    with pytest.raises(ApiError) as caught:
        decode(enveloped(b"v1", b"ConfigMap", metadata))
    assert caught.value.code == 400


def message(*parts):
    """Return a message with these fields; each value is a number, a text or a message."""
    return b"".join(
        number_field(number, value) if isinstance(value, int) else bytes_field(number, value)
        for number, value in parts
    )


def entry(key, value):
    return message((1, key), (2, value))


def test_a_custom_resource_definition_with_all_schema_fields_is_decoded():
    text = message((5, b"string"))
    schema = message(
        (5, b"object"),
        (29, entry(b"name", text)),
        (29, entry(b"list", message((5, b"array"), (24, message((1, text))), (16, 3)))),
        (29, entry(b"free", message((5, b"object"), (30, message((2, text)))))),
        (29, entry(b"shut", message((5, b"object"), (30, message((1, 0)))))),
        (29, entry(b"pick", message((8, message((1, b'"a"'))), (20, message((1, b'"a"')))))),
        (38, 1),
        (44, message((1, b"self.x"), (2, b"no"))),
    )
    version = message((1, b"v1"), (2, 1), (3, 1), (4, message((1, schema))), (5, message((1, b""))))
    names = message((1, b"widgets"), (4, b"Widget"), (3, b"w"))
    spec = message((1, b"example.com"), (3, names), (4, b"Namespaced"), (7, version))
    body = message((1, message((1, b"widgets.example.com"))), (2, spec))
    kind = message((1, b"apiextensions.k8s.io/v1"), (2, b"CustomResourceDefinition"))
    [read] = decode(MAGIC + message((1, kind), (2, body)))["spec"]["versions"]
    assert read["subresources"] == {"status": {}}
    found = read["schema"]["openAPIV3Schema"]
    assert found["x-kubernetes-preserve-unknown-fields"] is True
    assert found["x-kubernetes-validations"] == [{"rule": "self.x", "message": "no"}]
    properties = found["properties"]
    assert properties["list"] == {"type": "array", "items": {"type": "string"}, "maxItems": 3}
    assert properties["free"]["additionalProperties"] == {"type": "string"}
    assert properties["shut"]["additionalProperties"] is False
    assert (properties["pick"]["default"], properties["pick"]["enum"]) == ("a", ["a"])


def test_an_api_service_is_decoded():
    spec = message((2, b"g"), (3, b"v1"), (7, 100), (8, 15))
    body = message((1, message((1, b"v1.g"))), (2, spec))
    read = decode(enveloped(b"apiregistration.k8s.io/v1", b"APIService", body))
    assert read["spec"] == {
        "group": "g",
        "version": "v1",
        "groupPriorityMinimum": 100,
        "versionPriority": 15,
    }


def test_recently_added_fields_are_decoded():
    key = message((1, b"v"), (2, b"p"), (3, b"K"))
    variable = message((1, b"E"), (3, message((5, key))))
    container = message((1, b"c"), (7, variable))
    read = decode(enveloped(b"v1", b"Pod", message((2, message((2, container), (41, b"h"))))))
    assert read["spec"]["hostnameOverride"] == "h"
    [found] = read["spec"]["containers"][0]["env"]
    assert found["valueFrom"]["fileKeyRef"] == {"volumeName": "v", "path": "p", "key": "K"}
