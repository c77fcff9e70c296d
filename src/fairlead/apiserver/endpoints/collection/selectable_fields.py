"""Fields that field selectors may use, by kind, and how their values read as text.

Every kind has metadata.name and metadata.namespace; a few have more.

upstream: each kind's SelectableFields in pkg/registry/*/strategy.go and
pkg/apis/*/v1/conversion.go
"""

from __future__ import annotations

from typing import Final

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.json_path import json_path
from fairlead.apiserver.error import bad_request
from fairlead.apiserver.kind import Kind
from fairlead.apiserver.registry.selectable_field import FieldReader
from fairlead.apiserver.registry.strategies.table import strategy_of

NAME: Final = "metadata.name"
NAMESPACE: Final = "metadata.namespace"
_ALWAYS: Final = (NAME, NAMESPACE)


def reader(kind: Kind, field: str) -> FieldReader:
    """Reads `field` of objects of `kind` as text. Raises ApiError 400 if it is not selectable."""
    if field == NAME or (field == NAMESPACE and not _is_named_only(kind)):
        return _metadata(field.removeprefix("metadata."))
    if kind.custom is not None:
        return _selectable(kind.custom.selectable, field)
    strategy = strategy_of(kind)
    fields = strategy.selectable_in_version.get(kind.api_version, strategy.selectable_fields)
    if fields is not None:
        read = fields.get(field)
        if read is None:
            raise bad_request(strategy.unselectable_field.format(field))
        return read
    known = ", ".join(f'"{name}"' for name in _ALWAYS)
    raise bad_request(f'"{field}" is not a known field selector: only {known}')


def _is_named_only(kind: Kind) -> bool:
    """Whether a cluster-scoped kind rejects metadata.namespace; others accept it."""
    # upstream: AddFieldLabelConversionFunc in conversion.go of core, certificates and resource;
    # apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    is_custom = kind.custom is not None and not kind.namespaced
    return is_custom or not strategy_of(kind).selects_namespace


def _selectable(paths: tuple[str, ...], field: str) -> FieldReader:
    """A selectable field of a custom resource definition."""
    # upstream: apiextensions-apiserver/pkg/apiserver/conversion/converter.go:ConvertFieldLabel
    if f".{field}" not in paths:
        raise bad_request(f"field label not supported: {field}")
    path = json_path(f".{field}")

    def read(obj: Json) -> str:
        value = next(iter(path.find(obj)), "")
        return str(value).lower() if isinstance(value, bool) else str(value)

    return read


def _metadata(field: str) -> FieldReader:
    def read(obj: Json) -> str:
        text: str = obj["metadata"].get(field, "")
        return text

    return read
