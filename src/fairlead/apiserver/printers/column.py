"""Columns and printers of tables.

upstream: apimachinery/pkg/apis/meta/v1/types.go:TableColumnDefinition
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from fairlead.api.json import Json

Cell = str | int | float | bool | None
Cells = Callable[[Json, int], list[Cell]]
Conditions = Callable[[Json], list[Json]]
Order = Callable[[Json], tuple[int, str]]

_SPEC: Final = re.compile(r"(?P<name>[^/:*]+)(?::(?P<type>\w+))?(?:/(?P<format>\w+))?(?P<wide>\*?)")


class Column(Struct, frozen=True):
    """A table column; if `priority` is 1, only `kubectl get -o wide` shows it."""

    name: str
    type: str = "string"
    format: str = ""
    priority: int = 0
    description: str = ""

    def definition(self) -> Json:
        """Return the column as a TableColumnDefinition."""
        return {
            "name": self.name,
            "type": self.type,
            "format": self.format,
            "description": self.description,
            "priority": self.priority,
        }


class Printer(Struct, frozen=True):
    """The printer of a kind: its columns, and functions that compute a row.

    `cells` takes (object, current time in ns since 1970) and returns the cells of the object's row.
    `conditions` returns the row's conditions, which clients use to hide rows. Rows are sorted by
    `order`; if it is None, they keep the order of the list. In a table without rows, `rows` is null
    if `is_bare` is True, and otherwise an empty list.
    """

    columns: tuple[Column, ...]
    cells: Cells
    conditions: Conditions | None = None
    is_bare: bool = False
    order: Order | None = None


def printer(
    specs: str,
    cells: Cells,
    *,
    conditions: Conditions | None = None,
    is_bare: bool = False,
    order: Order | None = None,
) -> Printer:
    """Return a printer for columns such as `Name/name, Desired:integer, Node*`.

    The text after `:` is the column's type, and the text after `/` is its format. A column with `*`
    is shown only by `-o wide`.
    """
    columns = tuple(_column(spec.strip()) for spec in specs.split(","))
    return Printer(columns, cells, conditions, is_bare, order)


def _column(spec: str) -> Column:
    match = _SPEC.fullmatch(spec)
    assert match, spec
    return Column(
        match["name"], match["type"] or "string", match["format"] or "", 1 if match["wide"] else 0
    )
