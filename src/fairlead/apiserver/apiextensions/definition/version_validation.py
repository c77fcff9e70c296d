"""Validation of a version's printer columns, subresources and selectable fields.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.definition.field_path import FieldPathError, field_at
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import duplicate, invalid, required
from fairlead.apiserver.validation.meta.format import too_many

_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    *("byte", "date", "date-time", "double", "float", "int32", "int64", "password"),
)
_SELECTABLE_MAX: Final = 8
_SELECTABLE: Final = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with "
    "formats are allowed."
)


def column_causes(field: str, version: Json) -> Iterator[Cause]:
    """The errors of additionalPrinterColumns."""
    for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
        path, path_of_item = column.get("jsonPath", ""), f"{field}[{index}]"
        if not column.get("name"):
            yield required(f"{path_of_item}.name")
        problem = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield required(f"{path_of_item}.type", problem)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{path_of_item}.type", column["type"], problem)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            problem = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield invalid(f"{path_of_item}.format", column["format"], problem)
        if not path:
            yield required(f"{path_of_item}.JSONPath")
        else:
            yield from _path_causes(f"{path_of_item}.JSONPath", path)


def _path_causes(field: str, path: str, *roots: str) -> Iterator[Cause]:
    """A path must begin with a dot and, if `roots` are given, with one of them."""
    if not path.startswith("."):
        yield invalid(field, path, "must be a simple json path starting with .")
    elif roots and not path.startswith(tuple(f"{root}." for root in roots)):
        prefix = "either " if roots[1:] else ""
        yield invalid(field, path, f"should be a json path under {prefix}{' or '.join(roots)}")


def subresource_causes(field: str, version: Json) -> Iterator[Cause]:
    """The errors of the scale subresource's paths."""
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(name, "")
        if not path:
            yield required(f"{field}.scale.{name}")
        else:
            yield from _path_causes(f"{field}.scale.{name}", path, root)
    path = scale.get("labelSelectorPath")
    if path:
        yield from _path_causes(f"{field}.scale.labelSelectorPath", path, ".spec", ".status")


def selectable_field_causes(field: str, version: Json) -> Iterator[Cause]:
    """The errors of selectableFields."""
    raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: dict[tuple[str, ...], None] = {}
    for index, selectable_field in enumerate(version.get("selectableFields") or ()):
        path_of_item, path = f"{field}[{index}].jsonPath", selectable_field.get("jsonPath", "")
        if not path:
            yield required(path_of_item)
            continue
        try:
            names, schema = field_at(path, raw, is_plain=True)
        except FieldPathError as cause:
            yield invalid(path_of_item, path, f"is an invalid path: {cause}")
            continue
        if names[:1] == ("metadata",):
            yield invalid(path_of_item, path, "must not point to fields in metadata")
        if schema.get("type") not in ("string", "boolean", "integer"):
            yield invalid(path_of_item, path, _SELECTABLE)
        if names in seen:
            yield duplicate(path_of_item, path)
        seen[names] = None
    if len(seen) > _SELECTABLE_MAX:
        yield too_many(field, len(seen), _SELECTABLE_MAX)
