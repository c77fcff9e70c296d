"""Builds Tables: columns, and a row for each object with as much of the object as requested.

upstream: apiserver/pkg/endpoints/handlers/response.go:asTable
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.printers.column import Printer
from fairlead.apiserver.printers.printer import CUSTOM, printer_of

# The values of `includeObject`; "" means Metadata.
INCLUDES: Final = ("", "Metadata", "Object", "None")
# An annotation that DaemonSets have in version v1 only.
_GENERATION_ANNOTATION: Final = "deprecated.daemonset.template.generation"


def table(kind: Kind, objects: Iterable[Json], now: int, include: str) -> Json:
    """`columnDefinitions` and `rows` for the printer of `kind`, see `table_with`."""
    return table_with(_printer_of(kind), kind, objects, now, include)


def _printer_of(kind: Kind) -> Printer:
    if kind.custom is not None and isinstance(kind.custom.printer, Printer):
        return kind.custom.printer
    return CUSTOM if kind.is_custom else printer_of(kind.kind)


def table_with(
    printer_: Printer, kind: Kind, objects: Iterable[Json], now: int, include: str
) -> Json:
    """`columnDefinitions` and `rows` of objects of `kind` at `now` (ns since 1970).

    `include` is one of INCLUDES. Raises ApiError 400.
    """
    embed = embedding(kind, include)
    objects = sorted(objects, key=printer_.order) if printer_.order else objects
    rows = [{**_row(printer_, obj, now), **embed(obj)} for obj in objects]
    return {
        "columnDefinitions": [column.definition() for column in printer_.columns],
        "rows": rows or (None if printer_.is_bare else []),
    }


def _row(printer_: Printer, obj: Json, now: int) -> Json:
    row: Json = {"cells": printer_.cells(obj, now)}
    conditions = printer_.conditions(obj) if printer_.conditions else []
    return {**row, "conditions": conditions} if conditions else row


def embedding(kind: Kind, include: str) -> Callable[[Json], Json]:
    """Returns the part of an object to embed in its row. Raises ApiError 400."""
    if include not in INCLUDES:
        raise bad_request(
            f'Unable to convert to Table as requested: includeObject: Invalid value: "{include}": '
            "must be 'Metadata', 'Object', 'None', or empty"
        )
    if include == "None":
        return lambda _: {"object": None}
    if include == "Object":
        type_meta = {"kind": kind.kind, "apiVersion": kind.api_version}
        return lambda obj: {"object": {**type_meta, **obj}}
    head = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
    return lambda obj: {"object": {**head, "metadata": _metadata(kind, obj)}}


def _metadata(kind: Kind, obj: Json) -> Json:
    """An object's metadata in its internal version."""
    # upstream: pkg/apis/apps/v1/conversion.go:Convert_apps_DaemonSet_To_v1_DaemonSet
    meta: Json = obj.get("metadata", {})
    annotations = meta.get("annotations") or {}
    if kind.kind != "DaemonSet" or _GENERATION_ANNOTATION not in annotations:
        return meta
    kept = {key: text for key, text in annotations.items() if key != _GENERATION_ANNOTATION}
    rest = {key: value for key, value in meta.items() if key != "annotations"}
    return {**rest, "annotations": kept} if kept else rest
