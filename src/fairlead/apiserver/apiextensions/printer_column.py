"""The table printer of a custom resource, from its additionalPrinterColumns.

upstream: apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.json_path import JsonPathError, json_path
from fairlead.apiserver.printers.age import age
from fairlead.apiserver.printers.column import Cell, Column, Printer
from fairlead.apiserver.printers.field import name_of

Cells = Callable[[Json, int], list[Cell]]

_NAME: Final = Column("Name", format="name")
# The column of definitions that declare none.
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def printer_of(columns: Sequence[Json]) -> Printer:
    """The printer for `additionalPrinterColumns`, up to the first with an invalid path."""
    printable = list(takewhile(_is_read, columns or (_AGE,)))
    return Printer((_NAME, *map(_column, printable)), _cells(printable))


def _is_read(column: Json) -> bool:
    try:
        json_path(column["jsonPath"])
    except JsonPathError:
        return False
    return True


def _column(column: Json) -> Column:
    path = column.get("jsonPath", "")
    description = column.get("description") or (
        f"Custom resource definition column (in JSONPath format): {path}"
    )
    return Column(
        str(column.get("name", "")),
        str(column.get("type", "string")),
        str(column.get("format", "")),
        int(column.get("priority", 0)),
        description,
    )


def _cells(columns: Sequence[Json]) -> Cells:
    paths = [(json_path(column["jsonPath"]), str(column["type"])) for column in columns]

    def cells(obj: Json, now: int) -> list[Cell]:
        values = [_cell(path.find(obj), type_name, now) for path, type_name in paths]
        return [name_of(obj), *values]

    return cells


def _cell(values: list[Any], type_name: str, now: int) -> Cell:
    """The first value, if it has the column's type; None otherwise."""
    if not values:
        return None
    value = values[0]
    match type_name, value:
        case "string", _:
            return _text(value)
        case "boolean", bool():
            return value
        case "integer", int() | float() if not isinstance(value, bool):
            return int(value)
        case "number", int() | float() if not isinstance(value, bool):
            return value
        case "date", str():
            return _age(value, now)
        case _:
            return None


def _age(text: str, now: int) -> str:
    try:
        return age(text, now)
    except ValueError:
        return "<invalid>"


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True)
