"""Validation of the defaults in a schema against the schema.

upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.schema.pruning import pruned_value
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    NOWHERE,
    duplicate_item_causes,
    value_causes,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.schema.field_location import FieldLocation
from fairlead.apiserver.validation.meta.field import bounded, invalid
from fairlead.cel.cost.runtime_cost import OutOfBudgetError
from fairlead.cel.program import OUT_OF_BUDGET


def default_causes(raw: Json, field: str) -> Iterator[Cause]:
    """The errors of the defaults in the schema at `field`."""
    if raw.get("default") is not None:
        yield from _causes_of_default(raw, f"{field}.default")
    for name, inner in (raw.get("properties") or {}).items():
        yield from default_causes(inner, f"{field}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(raw.get(key), dict):
            yield from default_causes(raw[key], f"{field}.{key}")


def _causes_of_default(raw: Json, path: str) -> Iterator[Cause]:
    schema, value = structural(raw), raw["default"]
    unknown: list[FieldLocation] = []
    pruned_value(schema, value, unknown.append)
    if unknown:
        yield invalid(path, value, "must not have unknown fields")
    try:
        causes_found = (
            tuple(bounded(value_causes(schema, value, "")))
            or tuple(duplicate_item_causes(schema, value, ""))
            or tuple(broken_rules(schema, value, ABSENT, ""))
        )
    except OutOfBudgetError:
        yield invalid(path, "", OUT_OF_BUDGET)
        return
    for cause in causes_found:
        subpath = "" if cause.field in ("", NOWHERE) else f".{cause.field}".replace(".[", "[")
        yield Cause(cause.reason, cause.message, f"{path}{subpath}")
