"""OpenAPI v2 encoded as protobuf."""

from __future__ import annotations

import pytest

from fairlead.apiserver.openapi.documents import OpenApi
from fairlead.apiserver.openapi.v2 import swagger
from fairlead.apiserver.openapi.v2_protobuf import schema_message, swagger_message
from fairlead.apiserver.protobuf.wire import fields, varint
from fairlead.apiserver.registry.served_kinds import ServedKinds
from fairlead.apiserver.request import Request

ACCEPT = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
SENT = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


def named(message, number):
    """Return the named messages in a field, by name."""
    values = (dict(fields(value)) for key, value in fields(message) if key == number)
    return {value[1].decode(): value.get(2, b"") for value in values}


@pytest.fixture(scope="module")
def document():
    return swagger(ServedKinds())


@pytest.fixture(scope="module")
def message(document):
    return dict(fields(swagger_message(document)))


def test_every_path_and_every_definition_is_encoded(document, message):
    assert list(named(message[8], 2)) == list(document["paths"])
    assert list(named(message[9], 1)) == list(document["definitions"])
    assert message[1] == b"2.0"


def test_definitions_have_their_group_version_kinds(message):
    deployment = named(message[9], 1)["io.k8s.api.apps.v1.Deployment"]
    kinds = dict(fields(named(deployment, 31)["x-kubernetes-group-version-kind"]))[2]
    assert kinds == b'[{"group":"apps","kind":"Deployment","version":"v1"}]\n'


def test_a_definition_has_its_fields():
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "array", "items": {"$ref": "#/definitions/B"}},
            "m": {"additionalProperties": {"type": "string", "enum": ["x"]}, "default": {}},
        },
    }
    made = schema_message(schema)
    assert dict(fields(dict(fields(made))[22])) == {1: b"object"}
    assert dict(fields(made))[19] == b"a"
    properties = named(dict(fields(made))[25], 1)
    items = dict(fields(dict(fields(properties["a"]))[23]))
    assert dict(fields(items[1])) == {1: b"#/definitions/B"}
    values = dict(fields(dict(fields(properties["m"]))[21]))
    assert dict(fields(dict(fields(values[1]))[20])) == {2: b'"x"\n'}
    assert dict(fields(dict(fields(properties["m"]))[5])) == {2: b"{}\n"}


def test_operations_have_their_parameters(message):
    path = named(message[8], 2)["/api/v1/namespaces/{namespace}/pods/{name}"]
    patch = dict(fields(path))[8]
    parameters = [dict(fields(value)) for number, value in fields(patch) if number == 8]
    assert len(parameters) == 5  # the body, and four parameters in the query
    assert dict(fields(patch))[5] == b"patchCoreV1NamespacedPod"


def test_protobuf_is_sent_if_it_is_the_first_accepted_type():
    answer = OpenApi(ServedKinds(), "0.1")(Request("GET", "/openapi/v2", (), {"accept": ACCEPT}), 0)
    assert (answer.status, answer.content_type) == (200, SENT)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, b"\x00"), (127, b"\x7f"), (128, b"\x80\x01"), (300, b"\xac\x02")]
)
def test_a_number_is_encoded_as_a_varint(value, expected):
    assert varint(value) == expected
