"""The kinds that a CustomResourceDefinition adds to the API, one per served version.

upstream: apiextensions-apiserver/pkg/apiserver/customresource_{handler,discovery_controller}.go,
apiextensions-apiserver/pkg/registry/customresource/tableconvertor/tableconvertor.go
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Any, Final

from msgspec.structs import replace

from fairlead.api.json import Json, name_of
from fairlead.apiserver.apiextensions.custom_type import CustomType, ScalePaths
from fairlead.apiserver.apiextensions.json_path import JsonPathError, json_path, plain_path
from fairlead.apiserver.apiextensions.schema.structural import structural
from fairlead.apiserver.kind import Kind, subresource, version_order
from fairlead.apiserver.printers.age import age
from fairlead.apiserver.printers.column import Cell, Column, Printer

# The verbs in discovery, in upstream's order, which differs from that of built-in kinds.
VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
# The verbs in discovery while the definition is being deleted.
# upstream: apiextensions-apiserver/pkg/apiserver/customresource_discovery_controller.go:sync
LAST_VERBS: Final = ("delete", "deletecollection", "get", "list", "watch")


def kinds_of(definition: Json) -> tuple[Kind, ...]:
    """Return one kind per served version of a CustomResourceDefinition.

    `definition` must be valid, and its defaults must be set.
    """
    spec = definition["spec"]
    storage_version = next(version["name"] for version in spec["versions"] if version["storage"])
    types = tuple((f"{spec['group']}/{one['name']}", custom_type(one)) for one in spec["versions"])
    return tuple(
        _kind(spec, version, f"{spec['group']}/{storage_version}", types)
        for version in spec["versions"]
        if version["served"]
    )


def _kind(
    spec: Json, version: Json, stored_version: str, types: tuple[tuple[str, CustomType], ...]
) -> Kind:
    names, subresources = spec["names"], version.get("subresources") or {}
    return Kind(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        tuple(names.get("shortNames") or ()),
        namespaced=spec["scope"] == "Namespaced",
        has_generation=True,
        has_status="status" in subresources,
        verbs=VERBS,
        categories=tuple(names.get("categories") or ()),
        subresources=tuple(
            subresource(name, names["kind"]) for name in ("status", "scale") if name in subresources
        ),
        is_custom=True,
        singular_name=names.get("singular") or None,
        list_kind_name=names.get("listKind", ""),
        stored_version=stored_version,
        custom=replace(
            dict(types)[f"{spec['group']}/{version['name']}"],
            deprecation=_deprecation(spec, version),
        ),
        all_types=types,
        conversion_webhook=_conversion_webhook(spec),
    )


def _conversion_webhook(spec: Json) -> Json | None:
    conversion = spec.get("conversion") or {}
    return conversion.get("webhook") if conversion.get("strategy") == "Webhook" else None


def _deprecation(spec: Json, version: Json) -> str:
    """Return the warning for users of a deprecated version; "" if the version is not deprecated."""
    # upstream: customresource_handler.go:defaultDeprecationWarning
    if not version.get("deprecated"):
        return ""
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    group, kind = spec["group"], spec["names"]["kind"]
    priority = version_order(version["name"])
    served = [
        one["name"] for one in spec["versions"] if one["served"] and not one.get("deprecated")
    ]
    newer = [name for name in served if version_order(name) < priority]
    warning = f"{group}/{version['name']} {kind} is deprecated"
    return f"{warning}; use {group}/{min(newer, key=version_order)} {kind}" if newer else warning


def custom_type(version: Json) -> CustomType:
    """Return the type that one version of a definition describes."""
    schema = structural((version.get("schema") or {}).get("openAPIV3Schema") or {})
    subresources = version.get("subresources") or {}
    return CustomType(
        schema=schema,
        printer=printer_of(version.get("additionalPrinterColumns") or ()),
        scale=_scale_paths(subresources.get("scale")),
        selectable=tuple(row["jsonPath"] for row in version.get("selectableFields") or ()),
        has_status="status" in subresources,
    )


def _scale_paths(scale: Json | None) -> ScalePaths | None:
    if not scale:
        return None
    spec, status = scale["specReplicasPath"], scale["statusReplicasPath"]
    selector = scale.get("labelSelectorPath", "")
    return ScalePaths(
        spec,
        plain_path(spec),
        status,
        plain_path(status),
        selector,
        plain_path(selector) if selector else None,
    )


# --- columns -------------------------------------------------------------------------------------


Cells = Callable[[Json, int], list[Cell]]

_NAME: Final = Column("Name", format="name")
# The additional column for definitions that declare no additionalPrinterColumns.
_AGE: Final = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def printer_of(columns: Sequence[Json]) -> Printer:
    """Return the printer for the additionalPrinterColumns `columns`.

    If `columns` is empty, the printer prints the age. The first column with an invalid path and
    all columns after it are left out.
    """
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
    """Return the first of `values` as a cell of the type `type_name`.

    Return None if `values` is empty or its first value cannot be shown as this type.
    """
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
