"""Validation errors of updates: the tables `changes.yaml` and `statuses.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.patch.merge_patch import merge_patch
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.validation.validator import ApiValidator


def rows(name):
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return [pytest.param(row, id=row["what"]) for row in yaml.safe_load(text)]


def completed(kind, obj):
    return API_SERVER.default(kind, API_SERVER.decode(kind, obj))


def refusals(row, validate):
    api_version, named = row["kind"].split()
    meta = {"name": "x", "namespace": "default"}
    obj = {"apiVersion": api_version, "kind": named, "metadata": meta, **row["from"]}
    kind = kind_of(obj)
    if not kind.namespaced:
        del meta["namespace"]
    old = completed(kind, obj)
    try:
        validate(kind, API_SERVER.rules(kind), old, completed(kind, merge_patch(old, row["to"])))
    except ApiError as refusal:
        return [str(cause) for cause in refusal.causes]
    return []


@pytest.mark.parametrize("row", rows("changes.yaml"))
def test_all_errors_of_an_update_are_reported_as_upstream_does(row):
    """The causes of the refusal equal upstream's, in the same order."""
    assert refusals(row, ApiValidator().validate_update) == row.get("causes", [])


@pytest.mark.parametrize("row", rows("statuses.yaml"))
def test_all_errors_of_a_status_update_are_reported_as_upstream_does(row):
    """The causes of the refusal equal upstream's, in the same order."""
    assert refusals(row, ApiValidator().validate_status_update) == row.get("causes", [])
