"""The schemas in the shipped tables."""

from __future__ import annotations

import pytest

from fairlead.apiserver.schema.model import (
    ElementRelationship,
    Type,
    Zero,
    schema_of,
    schemas,
    words,
)


def at(api_version, kind, path):
    schema = schema_of(api_version, kind)
    for name in path.split("."):
        schema = schema.items if name == "[]" else schema.fields[name].schema
    return schema


def field(api_version, kind, path, name):
    return at(api_version, kind, path).fields[name]


def test_every_kind_in_the_tables_has_a_type():
    tables = schemas()
    paths = [path.rsplit("/", 1) for path in tables.kinds]
    assert all(tables.of_kind(api_version, kind) for api_version, kind in paths)


def test_a_custom_kind_has_no_schema():
    assert schema_of("example.com/v1", "Widget") is None


@pytest.mark.parametrize(
    ("kind", "path", "expected"),
    [
        ("Pod", "spec.containers", Type.LIST),
        ("Pod", "spec.containers.[].resources.limits", Type.MAP),
        ("Pod", "spec.containers.[].resources.limits.[]", Type.QUANTITY),
        ("Pod", "metadata.creationTimestamp", Type.TIME),
        ("Pod", "spec.tolerations.[].tolerationSeconds", Type.INT64),
        ("Secret", "data.[]", Type.BYTES),
        ("Service", "spec.ports.[].targetPort", Type.INT_OR_STRING),
    ],
)
def test_a_field_has_upstreams_type(kind, path, expected):
    """The type of a field equals the one that upstream publishes."""
    assert at("v1", kind, path).type is expected


def test_containers_are_merged_by_name():
    containers = field("v1", "Pod", "spec", "containers")
    assert containers.merge_key == "name"
    assert containers.schema.topology is ElementRelationship.MAP
    assert containers.schema.keys == ("name",)


def test_ports_have_different_keys_for_patches_and_server_side_apply():
    ports = at("v1", "Pod", "spec.containers.[]").fields["ports"]
    assert ports.merge_key == "containerPort"
    assert ports.schema.keys == ("containerPort", "protocol")
    assert ports.schema.items.key_defaults == {"protocol": "TCP"}


@pytest.mark.parametrize(
    ("path", "name", "zero"),
    [
        ("spec", "hostNetwork", Zero.DROP),
        ("spec", "terminationGracePeriodSeconds", Zero.KEEP),
        ("spec.containers.[]", "resources", Zero.EMIT),
        ("spec.containers.[]", "name", Zero.EMIT),
        ("spec", "securityContext", Zero.KEEP),
    ],
)
def test_empty_fields_are_kept_or_dropped_as_in_upstreams_types(path, name, zero):
    """An empty field is kept or dropped as by upstream's type."""
    assert field("v1", "Pod", path, name).zero is zero


def test_a_type_may_contain_itself():
    definition = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
    schema = schemas().of_definition(definition)
    assert schema.fields["properties"].schema.items is schema


def test_fields_have_descriptions():
    assert "terminationGracePeriodSeconds" in words()["io.k8s.api.core.v1.PodSpec"]
