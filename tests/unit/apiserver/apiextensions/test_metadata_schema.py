"""A schema of a custom resource may require metadata and limit its name."""

from __future__ import annotations

import pytest
from tests.unit.apiserver.apiextensions.test_recorded import definition_of

from fairlead.apiserver.apiextensions.served_kind import kinds_of


@pytest.fixture
def problems():
    """(field, reason) of each error of an object named `name`; `schema` is that of metadata."""

    def found(name, schema):
        root = {"type": "object", "required": ["metadata"], "properties": {"metadata": schema}}
        version = {"name": "v1", "served": True, "storage": True}
        version["schema"] = {"openAPIV3Schema": root}
        names = {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList"}
        body = {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boxes.example.com"},
            "spec": {
                "group": "example.com", "scope": "Namespaced", "names": names,
                "versions": [version],
            },
        }  # fmt: skip
        (kind,) = kinds_of(definition_of(body))
        meta = {"name": name, "namespace": "default", "uid": "u"}
        box = {"apiVersion": "example.com/v1", "kind": "Box", "metadata": meta}
        return [(cause.field, cause.reason) for cause in kind.custom.causes(box, None)]

    return found


def test_required_metadata_is_present(problems):
    assert problems("a", {"type": "object"}) == []


def test_the_schema_limits_the_name(problems):
    schema = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}
    assert problems("abc", schema) == []
    assert problems("abcd", schema) == [("metadata.name", "FieldValueTooLong")]
