"""What may be wrong with the parts of a definition's versions: columns, subresources, selectors.

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


def wrong_columns(field: str, version: Json) -> Iterator[Cause]:
    """What is wrong with the columns of tables."""
    for at, column in enumerate(version.get("additionalPrinterColumns") or ()):
        path, place = column.get("jsonPath", ""), f"{field}[{at}]"
        if not column.get("name"):
            yield required(f"{place}.name")
        why = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield required(f"{place}.type", why)
        elif column["type"] not in _COLUMN_TYPES:
            yield invalid(f"{place}.type", column["type"], why)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            why = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield invalid(f"{place}.format", column["format"], why)
        if not path:
            yield required(f"{place}.JSONPath")
        else:
            yield from _wrong_path(f"{place}.JSONPath", path)


def _wrong_path(field: str, path: str, *roots: str) -> Iterator[Cause]:
    """A path must begin with a point and, where there are `roots`, with one of them."""
    if not path.startswith("."):
        yield invalid(field, path, "must be a simple json path starting with .")
    elif roots and not path.startswith(tuple(f"{root}." for root in roots)):
        where = "either " if roots[1:] else ""
        yield invalid(field, path, f"should be a json path under {where}{' or '.join(roots)}")


def wrong_subresources(field: str, version: Json) -> Iterator[Cause]:
    """What is wrong with the paths to numbers of replicas."""
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, root in (("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")):
        path = scale.get(name, "")
        if not path:
            yield required(f"{field}.scale.{name}")
        else:
            yield from _wrong_path(f"{field}.scale.{name}", path, root)
    path = scale.get("labelSelectorPath")
    if path:
        yield from _wrong_path(f"{field}.scale.labelSelectorPath", path, ".spec", ".status")


def wrong_selectable(field: str, version: Json) -> Iterator[Cause]:
    """What is wrong with the fields that lists can be selected by."""
    raw = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    seen: dict[tuple[str, ...], None] = {}
    for at, row in enumerate(version.get("selectableFields") or ()):
        place, path = f"{field}[{at}].jsonPath", row.get("jsonPath", "")
        if not path:
            yield required(place)
            continue
        try:
            names, found = field_at(path, raw, is_plain=True)
        except FieldPathError as cause:
            yield invalid(place, path, f"is an invalid path: {cause}")
            continue
        if names[:1] == ("metadata",):
            yield invalid(place, path, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            yield invalid(place, path, _SELECTABLE)
        if names in seen:
            yield duplicate(place, path)
        seen[names] = None
    if len(seen) > _SELECTABLE_MAX:
        yield too_many(field, len(seen), _SELECTABLE_MAX)
