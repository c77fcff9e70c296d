"""Structural schemas: the parsed schemas of custom resources.

upstream: apiextensions-apiserver/pkg/apiserver/schema/structural.go, kubernetes.go
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from fairlead.api.json import Json

ABSENT: Final = object()
_PARSED: Final = frozenset(
    (
        *("properties", "items", "additionalProperties", "x-kubernetes-validations"),
        *("allOf", "anyOf", "oneOf", "not"),
    )
)


class Structural(Struct, frozen=True, eq=False):
    """One node of a schema."""

    raw: Json  # the OpenAPI schema from which the node was parsed
    type: str = ""
    properties: Mapping[str, Structural] = field(default_factory=dict)
    items: Structural | None = None
    additional: Structural | None = None  # the schema of a map's values
    default: Any = ABSENT  # ABSENT if the node has no default
    rules: tuple[Json, ...] = ()
    has_rules: bool = False  # whether this node or a node inside it has `rules`
    # (name, schema, length of the default in characters) of each property that has a default.
    filled: tuple[tuple[str, Structural, int], ...] = ()
    all_of: tuple[Structural, ...] = ()
    any_of: tuple[Structural, ...] = ()
    one_of: tuple[Structural, ...] = ()
    negated: tuple[Structural, ...] = ()  # the schema in `not`

    @property
    def is_int_or_string(self) -> bool:
        """True if the value may be an integer or a string."""
        return bool(self.raw.get("x-kubernetes-int-or-string"))

    @property
    def keeps_unknown(self) -> bool:
        """True if unknown fields are kept."""
        return bool(self.raw.get("x-kubernetes-preserve-unknown-fields"))

    @property
    def is_embedded(self) -> bool:
        """True if the values of this node are embedded API objects."""
        return bool(self.raw.get("x-kubernetes-embedded-resource"))

    @property
    def is_nullable(self) -> bool:
        """True if the value may be null."""
        return bool(self.raw.get("nullable"))


def structural(raw: Json) -> Structural:
    """Return the parsed OpenAPI v3 schema `raw`."""
    if _PARSED.isdisjoint(raw):  # most nodes of large schemas: a type, a description, bounds
        return Structural(raw, str(raw.get("type", "")), {}, default=raw.get("default", ABSENT))
    inner = {name: structural(one) for name, one in (raw.get("properties") or {}).items()}
    items, additional = _type_of(raw.get("items")), _type_of(raw.get("additionalProperties"))
    if raw.get("additionalProperties") is True:  # values of any type
        additional = structural({})
    rules = tuple(raw.get("x-kubernetes-validations") or ())
    children = (*inner.values(), items, additional)
    defaulted_properties = ((name, one) for name, one in inner.items() if one.default is not ABSENT)
    return Structural(
        raw,
        str(raw.get("type", "")),
        inner,
        items,
        additional,
        raw.get("default", ABSENT),
        rules,
        has_rules=bool(rules) or any(node.has_rules for node in children if node),
        filled=tuple((name, one, len(str(one.default))) for name, one in defaulted_properties),
        all_of=tuple(map(structural, raw.get("allOf") or ())),
        any_of=tuple(map(structural, raw.get("anyOf") or ())),
        one_of=tuple(map(structural, raw.get("oneOf") or ())),
        negated=(structural(raw["not"]),) if raw.get("not") else (),
    )


def _type_of(raw: Any) -> Structural | None:
    return structural(raw) if isinstance(raw, dict) else None
