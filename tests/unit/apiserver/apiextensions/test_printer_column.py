"""Columns of custom resources: the first value in the column's type, or nothing."""

from __future__ import annotations

import pytest

from fairlead.apiserver.apiextensions.served_kind import printer_of

NOW = 65_000_000_000


def cell(type_name, value):
    column = {"name": "C", "type": type_name, "jsonPath": ".v"}
    return printer_of([column]).cells({"metadata": {"name": "a"}, "v": value}, NOW)[1]


@pytest.mark.parametrize(
    ("type_name", "value", "expected"),
    [
        ("string", "x", "x"),
        ("string", 3, "3"),
        ("string", {"a": [1]}, '{"a":[1]}'),
        ("integer", 3, 3),
        ("integer", 3.7, 3),
        ("integer", "3", None),
        ("integer", True, None),
        ("number", 1.5, 1.5),
        ("boolean", True, True),
        ("boolean", "true", None),
        ("date", "1970-01-01T00:00:05Z", "60s"),
        ("date", "soon", "<invalid>"),
        ("date", 5, None),
    ],
)
def test_a_cell(type_name, value, expected):
    assert cell(type_name, value) == expected


def test_what_is_not_there_is_nothing():
    column = {"name": "C", "type": "string", "jsonPath": ".spec.nope"}
    assert printer_of([column]).cells({"metadata": {"name": "a"}}, NOW) == ["a", None]


def test_without_columns_the_age_is_shown():
    printer = printer_of([])
    assert [(column.name, column.type) for column in printer.columns] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    obj = {"metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:05Z"}}
    assert printer.cells(obj, NOW) == ["a", "60s"]


def test_columns_end_where_a_path_cannot_be_read():
    """A definition may have any path that begins with a point."""
    rows = [{"name": name, "type": "string", "jsonPath": f".{name}"} for name in ("a", "b[", "c")]
    assert [column.name for column in printer_of(rows).columns] == ["Name", "a"]
