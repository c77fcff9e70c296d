"""API objects within custom resources."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.custom_type import embedded_object_causes
from fairlead.apiserver.apiextensions.schema.structural import structural

INNER = {"type": "object", "x-kubernetes-embedded-resource": True}
SCHEMA = {"type": "object", "properties": {"o": INNER, "l": {"type": "array", "items": INNER}}}
GOOD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Any_Name"}}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"o": GOOD, "l": [GOOD]}, []),
        ({"o": {}}, ["o.apiVersion: Required value", "o.kind: Required value"]),
        (
            {"l": [GOOD, {**GOOD, "kind": ""}]},
            ['l[1].kind: Invalid value: "": must not be empty'],
        ),
        ({"o": {**GOOD, "apiVersion": 1}}, ["o.apiVersion: Invalid value: 1: must be a string"]),
        (
            {"o": {**GOOD, "apiVersion": "a/b/c"}},
            ['o.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"o": {**GOOD, "metadata": {"name": "a/b"}}},
            ["o.metadata.name: Invalid value: \"a/b\": may not contain '/'"],
        ),
    ],
)
def test_embedded_objects_need_a_kind_and_valid_metadata(value, said):
    """An embedded object without a kind or with invalid metadata is refused."""
    found = embedded_object_causes(
        structural({"properties": {"spec": SCHEMA}}), {"spec": value}, ""
    )
    assert [f"{cause.field}: {cause.message}" for cause in found] == [f"spec.{one}" for one in said]
