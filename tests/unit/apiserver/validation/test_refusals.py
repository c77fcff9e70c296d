"""Validation errors of new objects by kind: the tables in `refusals`.

A row has a description, a `kind` (apiVersion and kind), the content of an object, and the `causes`
of its refusal, in order. `pod` has fields that are merged into the spec of a valid pod, and
`container` fields for its only container. An object without causes is accepted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.registry.api_server import API_SERVER
from fairlead.apiserver.validation.validator import ApiValidator

TABLES = sorted((Path(__file__).parent / "refusals").glob("*.yaml"))
ROWS = [
    pytest.param(row, id=f"{table.stem}: {row['what']}")
    for table in TABLES
    for row in yaml.safe_load(table.read_text(encoding="utf-8"))
]


def manifest_of(row):
    """Return the object that a row describes."""
    content = {key: row[key] for key in row if key not in ("what", "kind", "causes")}
    container = {"name": "c", "image": "i", **content.pop("container", {})}
    if "kind" not in row:
        content["spec"] = {"containers": [container], **content.pop("pod", {})}
    api_version, kind = row.get("kind", "v1 Pod").split()
    meta = {"name": "x", "namespace": "default", **content.pop("metadata", {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, **content}


def problems(manifest):
    """Return the causes of the refusal as texts, or [] if the object is accepted."""
    kind = kind_of(manifest)
    if not kind.namespaced:
        manifest["metadata"].pop("namespace", None)
    try:
        made = API_SERVER.default(kind, API_SERVER.decode(kind, manifest))
        ApiValidator().validate(kind, API_SERVER.rules(kind), made)
    except ApiError as refusal:
        return [str(cause) for cause in refusal.causes] or [refusal.message]
    return []


@pytest.mark.parametrize("row", ROWS)
def test_all_errors_of_an_object_are_reported_as_upstream_does(row):
    """The causes of the refusal equal upstream's, in the same order."""
    assert problems(manifest_of(row)) == row.get("causes", [])
