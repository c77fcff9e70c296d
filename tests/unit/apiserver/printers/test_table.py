"""The object in a table row, and rows of special objects."""

from __future__ import annotations

import pytest

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import KINDS, NODE_METRICS, POD, POD_METRICS, Kind
from fairlead.apiserver.printers.table import PRINTERS, table
from fairlead.apiserver.registry.served_kinds import BUILT_IN

NOW = 1_767_226_000_000_000_000
OBJECT = {"metadata": {"name": "a", "namespace": "n"}, "spec": {}}
WIDGET = Kind("example.com", "v1", "Widget", "widgets", is_custom=True)


def embedded(include):
    (row,) = table(POD, [OBJECT], NOW, include)["rows"]
    return row.get("object")


@pytest.mark.parametrize("include", ["", "Metadata"])
def test_a_row_contains_the_metadata_by_default(include):
    assert embedded(include) == {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": OBJECT["metadata"],
    }


def test_a_row_can_contain_the_whole_object_with_its_kind():
    assert embedded("Object") == {"kind": "Pod", "apiVersion": "v1", **OBJECT}


def test_a_row_can_omit_the_object():
    assert embedded("None") is None


def test_an_invalid_include_object_is_refused_with_upstreams_message():
    with pytest.raises(ApiError) as refused:
        embedded("Bad")
    assert refused.value.code == 400
    assert refused.value.message == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "Bad": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.resource)
def test_a_bookmark_of_any_kind_has_a_row(kind):
    made = table(kind, [{"metadata": {"resourceVersion": "5"}}], NOW, "")
    assert len(made["rows"][0]["cells"]) == len(made["columnDefinitions"])


def test_every_printer_belongs_to_a_served_kind():
    served = {kind.kind for kind in (*KINDS, NODE_METRICS, POD_METRICS)}
    assert set(PRINTERS) - served == {"Scale"}


def test_a_custom_resource_shows_its_name_and_age():
    (row,) = table(WIDGET, [OBJECT], NOW, "None")["rows"]
    assert row == {"cells": ["a", "<unknown>"], "object": None}


def test_flow_schemas_are_sorted_by_precedence_and_name():
    """The order of the list does not matter."""
    schemas = [
        {"metadata": {"name": name}, "spec": {"matchingPrecedence": precedence}}
        for name, precedence in (("catch-all", 10_000), ("z", 2), ("exempt", 1), ("a", 2))
    ]
    kind = Kind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas")
    rows = table(kind, schemas, NOW, "None")["rows"]
    assert [row["cells"][0] for row in rows] == ["exempt", "a", "z", "catch-all"]
