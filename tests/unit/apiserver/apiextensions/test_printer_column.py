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
def test_a_value_is_shown_in_the_type_of_its_column(type_name, value, expected):
    assert cell(type_name, value) == expected


def test_a_missing_value_has_an_empty_cell():
    column = {"name": "C", "type": "string", "jsonPath": ".spec.nope"}
    assert printer_of([column]).cells({"metadata": {"name": "a"}}, NOW) == ["a", None]


def test_name_and_age_are_shown_without_columns():
    printer = printer_of([])
    assert [(column.name, column.type) for column in printer.columns] == [
        ("Name", "string"),
        ("Age", "date"),
    ]
    obj = {"metadata": {"name": "a", "creationTimestamp": "1970-01-01T00:00:05Z"}}
    assert printer.cells(obj, NOW) == ["a", "60s"]


def test_columns_end_before_an_invalid_path():
    """Validation accepts any path that begins with a dot."""
    rows = [{"name": name, "type": "string", "jsonPath": f".{name}"} for name in ("a", "b[", "c")]
    assert [column.name for column in printer_of(rows).columns] == ["Name", "a"]
