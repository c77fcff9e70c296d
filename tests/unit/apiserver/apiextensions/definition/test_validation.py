"""Errors of invalid CustomResourceDefinitions: the table in `refusals.yaml`.

A row has the schema of the objects' `spec` (`schema`) or of whole objects (`root`), and fields that
are added to the only `version`, to the definition's `spec` or to its `metadata`. `causes` are the
causes of the refusal, in order.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fairlead.apiserver.apiextensions.definition.rule_cost import ExpressionLengthBudget
from fairlead.apiserver.apiextensions.definition.status import with_stored_versions
from fairlead.apiserver.apiextensions.definition.validation import causes
from fairlead.apiserver.defaulting.definition import with_definition_defaults

ROWS = yaml.safe_load((Path(__file__).parent / "refusals.yaml").read_text(encoding="utf-8"))


def definition_of(row):
    """Return the definition that a row describes."""
    spec = row.get("schema", {"type": "object"})
    root = row.get("root", {"type": "object", "properties": {"spec": spec}})
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": root}}
    return {
        "metadata": {"name": "bads.g.example.com", **row.get("metadata", {})},
        "spec": {
            "group": "g.example.com",
            "scope": "Namespaced",
            "names": {"plural": "bads", "kind": "Bad"},
            "versions": [{**version, **row.get("version", {})}],
            **row.get("spec", {}),
        },
    }


def problems(row):
    """Return the causes as texts."""
    return [
        str(cause)
        for cause in causes(
            with_stored_versions(with_definition_defaults(definition_of(row))),
            ExpressionLengthBudget(),
        )
    ]


ODD = "the value has the wrong type"


@pytest.mark.parametrize(
    ("inner", "field"),
    [
        ({"type": "object", "properties": 1}, "items.properties"),
        ({"type": "object", "properties": {"a": None}}, "items.properties[a]"),
        ({"type": "object", "allOf": [3]}, "items.allOf[0]"),
        ({"type": "string", "maxLength": "x"}, "items.maxLength"),
        ({"x-kubernetes-validations": [{"rule": 3}]}, "items.x-kubernetes-validations"),
        ({"type": "object", "required": [3]}, "items.required"),
        ({"type": "array", "items": {"minimum": True}}, "items.items.minimum"),
    ],
)  # fmt: skip
def test_a_malformed_schema_is_refused(inner, field):
    """The check includes schemas below `items`."""
    (said,) = problems({"schema": {"type": "array", "items": inner}})
    where = f"spec.validation.openAPIV3Schema.properties[spec].{field}"
    assert said == f'{where}: Invalid value: "": {ODD}'


@pytest.mark.parametrize("row", [pytest.param(row, id=row["what"]) for row in ROWS])
def test_all_errors_of_a_definition_are_reported_as_upstream_does(row):
    """The causes of the refusal equal upstream's, in the same order."""
    assert problems(row) == row["causes"]
