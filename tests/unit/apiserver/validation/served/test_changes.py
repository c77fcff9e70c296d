"""What a served API says against changes of objects that exist: the table `changes.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from fairlead.apiserver.error import ApiError
from fairlead.apiserver.kind import kind_of
from fairlead.apiserver.merge_patch import merge_patch
from fairlead.apiserver.served.strategies import ServedStrategies
from fairlead.apiserver.validation import validate_update

TABLE = Path(__file__).parent / "changes.yaml"
ROWS = [
    pytest.param(row, id=row["what"]) for row in yaml.safe_load(TABLE.read_text(encoding="utf-8"))
]


def completed(kind, obj):
    return ServedStrategies().completed(kind, obj)


@pytest.mark.parametrize("row", ROWS)
def test_change(row):
    """A change is refused for all that is wrong with it, in upstream's words."""
    api_version, named = row["kind"].split()
    meta = {"name": "x", "namespace": "default"}
    obj = {"apiVersion": api_version, "kind": named, "metadata": meta, **row["from"]}
    kind = kind_of(obj)
    if not kind.namespaced:
        del meta["namespace"]
    old = completed(kind, obj)
    causes = []
    try:
        validate_update(kind, old, completed(kind, merge_patch(old, row["to"])), nullable=True)
    except ApiError as refusal:
        causes = [str(cause) for cause in refusal.causes]
    assert causes == row.get("causes", [])
