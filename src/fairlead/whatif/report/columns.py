"""Tables stored as columns: the compact form of tables embedded in the page.

A column with few distinct values becomes {"of": values, "at": indices}. `static/data.js` decodes
this form. NaN and infinity become null, which the page shows as a dash.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fairlead.api.json import Json

INTERNED_MIN = 8  # with fewer values, an index costs more than it saves


def finite(value: Any) -> Any:
    """Return `value`; a float is rounded to four places, NaN and infinity become None."""
    if not isinstance(value, float):
        return value
    return round(value, 4) if math.isfinite(value) else None


def figures(row: Mapping[str, Any] | None) -> Json:
    """Return `row` with each number passed through `finite`."""
    return {name: finite(value) for name, value in (row or {}).items()}


def column(values: Iterable[Any]) -> Any:
    """Return `values` as a list, or as {"of": distinct values, "at": indexes} if many are equal."""
    listed = list(values)
    if any(issubclass(kind, float) for kind in set(map(type, listed))):
        listed = [finite(value) for value in listed]
    distinct = dict.fromkeys(listed)
    if len(listed) < INTERNED_MIN or len(distinct) * 2 > len(listed):
        return listed
    index = {value: at for at, value in enumerate(distinct)}
    return {"of": list(distinct), "at": [index[value] for value in listed]}


def table(rows: Sequence[Mapping[str, Any]], fields: Sequence[str]) -> Json:
    """Return `rows` as one column per field; missing fields are None."""
    columns = {field: column(row.get(field) for row in rows) for field in fields}
    return {"length": len(rows), "columns": columns}
