"""The schemas of files and answers, and the tables of answers, are from tools/form_schema.py."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import jsonschema
import pytest

from fairlead.api.text.yaml_documents import documents

ROOT = Path(__file__).parent.parent
TOOL = runpy.run_path(str(ROOT / "tools" / "form_schema.py"))
PAGE = ROOT / "docs" / "cluster-autoscaler.md"
EXAMPLE = re.compile(r"```yaml\n(node-groups:.*?)```", re.DOTALL)


@pytest.mark.parametrize("name", TOOL["FORMS"])
def test_a_schema_is_the_generated_one(name, request):
    if request.config.getoption("--update-golden"):
        TOOL["main"]()
    assert (TOOL["DOCS"] / name).read_text() == TOOL["schema_text"](name)


def test_the_tables_of_the_answers_are_the_generated_ones():
    page = TOOL["PAGE"].read_text()
    assert TOOL["MARK"] in page
    assert page == TOOL["page_text"](page)


@pytest.fixture
def node_groups():
    """The validator of the file of --node-groups, and the example in the documentation."""
    schema = json.loads((TOOL["DOCS"] / "node-groups-schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    [example] = documents(EXAMPLE.search(PAGE.read_text())[1])
    return jsonschema.Draft202012Validator(schema), example


def test_the_documented_file_is_valid(node_groups):
    schema, example = node_groups
    schema.validate(example)


@pytest.mark.parametrize("change", [{"colour": 1}, {"max": "many"}, {"labels": {"pool": 1}}])
def test_a_file_with_an_unknown_field_or_wrong_type_is_invalid(node_groups, change):
    schema, example = node_groups
    example["node-groups"][0] |= change
    assert not schema.is_valid(example)
