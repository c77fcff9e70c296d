"""A Table: columns, and a row for each object with as much of the object as was asked for.

upstream: apiserver/pkg/endpoints/handlers/response.go:asTable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.table.column import Printer
from fairlead.apiserver.table.printers import CUSTOM, printer_of

Json = dict[str, Any]

# What `includeObject` may be; nothing means Metadata.
INCLUDES: Final = ("", "Metadata", "Object", "None")


def table(kind: Kind, objects: Iterable[Json], now: int, include: str) -> Json:
    """`columnDefinitions` and `rows`, see `table_with`; custom resources have Name and Age."""
    return table_with(_printer_of(kind), kind, objects, now, include)


def _printer_of(kind: Kind) -> Printer:
    if kind.custom is not None:
        return kind.custom.printer
    return CUSTOM if kind.is_custom else printer_of(kind.kind)


def table_with(
    printed: Printer, kind: Kind, objects: Iterable[Json], now: int, include: str
) -> Json:
    """`columnDefinitions` and `rows` of objects of `kind` at `now` (ns since 1970).

    `include` is one of INCLUDES. Raises ApiError 400.
    """
    embed = embedding(kind, include)
    rows = [{**_row(printed, obj, now), **embed(obj)} for obj in objects]
    return {
        "columnDefinitions": [column.definition() for column in printed.columns],
        "rows": rows or (None if printed.is_bare else []),
    }


def _row(printed: Printer, obj: Json, now: int) -> Json:
    row: Json = {"cells": printed.cells(obj, now)}
    conditions = printed.conditions(obj) if printed.conditions else []
    return {**row, "conditions": conditions} if conditions else row


def embedding(kind: Kind, include: str) -> Callable[[Json], Json]:
    """What of an object goes along with its row. Raises ApiError 400 for an unknown `include`."""
    if include not in INCLUDES:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    if include == "None":
        return lambda _: {}
    if include == "Object":
        named = {"kind": kind.kind, "apiVersion": kind.api_version}
        return lambda obj: {"object": {**named, **obj}}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return lambda obj: {"object": {**head, "metadata": obj.get("metadata", {})}}
