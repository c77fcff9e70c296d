"""Whether the defaults in a schema are values of their types.

upstream: apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.cost_budget import TooMuchWorkError
from fairlead.apiserver.apiextensions.schema.pruning import shaped_value
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    NOWHERE,
    checked,
    repeated_items,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.schema.place import Place
from fairlead.apiserver.validation.meta.field import bounded, invalid
from fairlead.cel.program import OUT_OF_BUDGET


def wrong_defaults(raw: Json, field: str) -> Iterator[Cause]:
    """What is wrong with the defaults in the schema that stands at `field`."""
    if raw.get("default") is not None:
        yield from _wrong(raw, f"{field}.default")
    for name, inner in (raw.get("properties") or {}).items():
        yield from wrong_defaults(inner, f"{field}.properties[{name}]")
    for key in ("additionalProperties", "items"):
        if isinstance(raw.get(key), dict):
            yield from wrong_defaults(raw[key], f"{field}.{key}")


def _wrong(raw: Json, place: str) -> Iterator[Cause]:
    schema, value = structural(raw), raw["default"]
    unknown: list[Place] = []
    shaped_value(schema, value, unknown.append)
    if unknown:
        yield invalid(place, value, "must not have unknown fields")
    try:
        found = (
            tuple(bounded(checked(schema, value, "")))
            or tuple(repeated_items(schema, value, ""))
            or tuple(broken_rules(schema, value, ABSENT, ""))
        )
    except TooMuchWorkError:
        yield invalid(place, "", OUT_OF_BUDGET)
        return
    for cause in found:
        below = "" if cause.field in ("", NOWHERE) else f".{cause.field}".replace(".[", "[")
        yield Cause(cause.reason, cause.message, f"{place}{below}")
