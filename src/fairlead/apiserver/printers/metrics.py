"""Table rows of NodeMetrics and PodMetrics.

upstream: metrics-server's pkg/api/table.go
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.api.json import Json, items, mapping, name_of, text
from fairlead.api.quantity import Quantity, canonical, parse_quantity
from fairlead.apiserver.printers.column import Cell, printer

_COLUMNS: Final = "Name/name, cpu/quantity, memory/quantity, Window/duration"
_RESOURCES: Final = ("cpu", "memory")


def _node(obj: Json, _now: int) -> list[Cell]:
    return _row(obj, (mapping(obj, "usage"),))


def _pod(obj: Json, _now: int) -> list[Cell]:
    return _row(obj, [mapping(row, "usage") for row in items(obj, "containers")])


def _row(obj: Json, usages: Sequence[Mapping[str, str]]) -> list[Cell]:
    sums = [_sum([usage[name] for usage in usages if name in usage]) for name in _RESOURCES]
    return [name_of(obj), *sums, text(obj, "window")]


def _sum(texts: Sequence[str]) -> str:
    """Return the sum of the quantities `texts`, in the format of the first non-zero quantity."""
    amounts = [parse_quantity(text) for text in texts]
    if not amounts:
        return "0"
    format_ = next((one.format for one in amounts if one.nano), amounts[0].format)
    return canonical(Quantity(nano=sum(one.nano for one in amounts), format=format_))


NODE_METRICS: Final = printer(_COLUMNS, _node, is_bare=True)
POD_METRICS: Final = printer(_COLUMNS, _pod, is_bare=True)
