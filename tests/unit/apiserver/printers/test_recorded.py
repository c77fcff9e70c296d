"""Table columns and rows, equal to those of kube-apiserver 1.36.2.

The first line of the file has the columns of each kind by group/version/plural/subresource. Each
further line has an object and its cells; `<age>` is a cell that depends on the clock.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead.apiserver.kind import POD
from fairlead.apiserver.printers.table import table
from fairlead.apiserver.registry.served_kinds import ServedKinds

FILE = Path(__file__).with_name("recorded_rows.jsonl.gz")
HEAD, *ROWS = [json.loads(line) for line in gzip.decompress(FILE.read_bytes()).splitlines()]
COLUMNS = HEAD["columns"]
NOW = 1_767_226_000_000_000_000
SCALE = replace(POD, kind="Scale")


def kind_at(path):
    group, version, plural, *part = path.split("/")
    return SCALE if "scale" in part else ServedKinds().find(group, version, plural)


def is_same(ours, theirs):
    """Return whether two cells are equal and have the same type; ages always match."""
    if isinstance(theirs, str) and "<age>" in theirs:
        pattern = re.escape(theirs).replace("<age>", r"\w+")
        return re.fullmatch(pattern, ours) is not None
    return ours == theirs and type(ours) is type(theirs)


@pytest.mark.parametrize("path", COLUMNS)
def test_the_columns_of_a_kind_equal_upstreams(path):
    assert table(kind_at(path), [], NOW, "")["columnDefinitions"] == COLUMNS[path]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_cells_of_an_object_equal_upstreams(row):
    obj = row["object"]
    known = ServedKinds().of_type(obj["apiVersion"], obj["kind"])
    kind = SCALE if row["kind"] == "Scale" else known
    (ours,) = table(kind, [obj], NOW, "")["rows"]
    pairs = list(zip(ours["cells"], row["cells"], strict=True))
    assert [pair for pair in pairs if not is_same(*pair)] == []


def test_many_objects_and_kinds_are_recorded():
    assert len(ROWS) > 80
    assert len(COLUMNS) > 50
