"""Definitions and custom resources as kube-apiserver 1.36.2 accepted or refused them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from fairlead.apiserver.apiextensions.definition.rule_cost import ExpressionLengthBudget
from fairlead.apiserver.apiextensions.definition.status import with_stored_versions
from fairlead.apiserver.apiextensions.definition.validation import causes
from fairlead.apiserver.apiextensions.served_kind import kinds_of
from fairlead.apiserver.defaulting.definition import with_definition_defaults
from fairlead.apiserver.error import invalid
from fairlead.apiserver.kind import CUSTOM_RESOURCE_DEFINITION
from fairlead.apiserver.schema.decoder import decoded
from fairlead.apiserver.schema.field_location import Notes
from fairlead.apiserver.schema.model import schema_of

FILE = Path(__file__).with_name("recorded.jsonl.gz")
ROWS = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
DEFINITIONS = [row for row in ROWS if row["what"] == "definition"]
WIDGETS = [row for row in ROWS if row["what"] == "widget"]


def definition_of(body):
    """Return a definition after decoding and defaulting."""
    read, _ = decoded(schema_of("apiextensions.k8s.io/v1", "CustomResourceDefinition"), body)
    return with_stored_versions(with_definition_defaults(read))


(WIDGET,) = kinds_of(definition_of(next(r for r in ROWS if r["what"] == "widgets")["body"]))


@pytest.mark.parametrize("row", DEFINITIONS, ids=lambda row: row["id"])
def test_a_bad_definition_is_refused_in_upstreams_words(row):
    definition = definition_of(row["body"])
    name = definition["metadata"]["name"]
    refusal = invalid(
        CUSTOM_RESOURCE_DEFINITION, "", name, tuple(causes(definition, ExpressionLengthBudget()))
    )
    assert refusal.message == row["message"]


@pytest.mark.parametrize("row", WIDGETS, ids=lambda row: row["id"])
def test_a_custom_resource_is_stored_or_refused_as_upstream_does(row):
    notes = Notes()
    obj = WIDGET.custom.pruned_and_defaulted(row["body"], notes)
    obj.pop("status", None)
    found = [
        [cause.reason, cause.message, cause.field] for cause in WIDGET.custom.causes(obj, None)
    ]
    # Upstream validates the fields of an object in random order.
    assert sorted(found) == sorted(row.get("causes", []))
    if "stored" in row:
        assert {key: obj[key] for key in obj if key != "metadata"} == row["stored"]
        quoted = [note.replace('"', '\\"') for note in notes.texts]
        assert [f'299 - "{note}"' for note in quoted] == (
            [row["warning"]] if row["warning"] else []
        )


def test_accepted_and_refused_objects_are_recorded():
    refused = sum("causes" in row for row in WIDGETS)
    assert refused > 15
    assert len(WIDGETS) - refused > 8
    assert len(DEFINITIONS) > 15
