"""Rows as columns: the compact form in which tables are embedded in the page.

A column of few distinct values becomes {"of": values, "at": indices}: eight thousand pods repeat a
few dozen shapes, nodes and reasons. `static/data.js` undoes it. Numbers that JSON cannot carry
(NaN, infinity) become null, which the page shows as a dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.api.json import Json

INTERNED_MIN = 8  # below this many values an index costs more than it saves


def finite(value: Any) -> Any:
    """`value`, to the millisecond where it is a float, or None where JSON has no such number."""
    if not isinstance(value, float):
        return value
    return round(value, 3) if math.isfinite(value) else None


def figures(row: Mapping[str, Any] | None) -> Json:
    """`row` with only numbers that JSON can carry."""
    return {name: finite(value) for name, value in (row or {}).items()}


def column(values: Iterable[Any]) -> Any:
    """`values` as a list, or interned where at most half of them are distinct."""
    listed = [finite(value) for value in values]
    index = {value: at for at, value in enumerate(dict.fromkeys(listed))}
    if len(listed) < INTERNED_MIN or len(index) * 2 > len(listed):
        return listed
    return {"of": list(index), "at": [index[value] for value in listed]}


def table(rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> Json:
    """`rows` as one column per field; what a row lacks is None."""
    columns = {field: column(row.get(field) for row in rows) for field in fields}
    return {"length": len(rows), "columns": columns}
