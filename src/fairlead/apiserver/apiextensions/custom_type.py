"""CustomType: everything that a definition says about the objects of one version.

upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from fairlead.api.json import Json
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.cost_budget import TooMuchWorkError
from fairlead.apiserver.apiextensions.json_path import JsonPath
from fairlead.apiserver.apiextensions.schema.embedded_object import wrong_embedded
from fairlead.apiserver.apiextensions.schema.pruning import IDENTITY, pruned_object, shaped
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    NOWHERE,
    checked,
    repeated_items,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.printers.column import Printer
from fairlead.apiserver.schema.decoding import read
from fairlead.apiserver.schema.model import Schema, schemas
from fairlead.apiserver.schema.place import Notes, Place
from fairlead.apiserver.validation.meta.field import bounded, invalid
from fairlead.cel.program import OUT_OF_BUDGET

INT32_MAX: Final = 2**31 - 1
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_UNCHECKED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
# With one of these a value is not what rules expect it to be.
# upstream: customresource/validator.go:hasBlockingErr
_BLOCKING: Final = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """Where an object has what a Scale shows; `selector` None where it has none."""

    spec_text: str
    spec: JsonPath
    status_text: str
    status: JsonPath
    selector_text: str = ""
    selector: JsonPath | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CustomType:
    """`fields` is the type as managers see it, `selectable` are fields that lists may select.

    `deprecation` is what whoever asks for this version is told, "" while it is not on its way out.
    """

    schema: Structural
    fields: Schema
    printer: Printer
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    has_status: bool = False
    deprecation: str = ""

    @property
    def raw(self) -> Json:
        """The OpenAPI schema as the definition has it."""
        return self.schema.raw

    def pruned(self, obj: Json) -> Json:
        """`obj` with unknown fields pruned."""
        return pruned_object(self.schema, obj)

    def shaped(self, obj: Json, notes: Notes) -> Json:
        """`obj` as it is stored; fields that are dropped are noted.

        Raises TypeMismatchError for metadata that is none.
        """
        made = _with_plain_metadata(obj, notes)
        return shaped(self.schema, made, notes.unknown)

    def causes(self, obj: Json, old: Json | None) -> Iterator[Cause]:
        """What is wrong with `obj`, which is new or was `old` before."""
        before = ABSENT if old is None else _content(old)
        try:
            wrong = list(bounded(checked(self.schema, _content(obj), "", before)))
        except TooMuchWorkError:
            yield Cause("FieldValueInvalid", f"Invalid value: null: {OUT_OF_BUDGET}", NOWHERE)
            return
        found = [*bounded(wrong_embedded(self.schema, _content(obj), "")), *wrong]
        yield from found
        yield from repeated_items(self.schema, _content(obj), "")
        yield from self._wrong_scale(obj)
        if not self.schema.has_rules:
            return
        if any(cause.reason in _BLOCKING for cause in found):
            yield Cause("FieldValueInvalid", f"Invalid value: null: {_UNCHECKED}", NOWHERE)
            return
        yield from broken_rules(self.schema, obj, ABSENT if old is None else old, "")

    def _wrong_scale(self, obj: Json) -> Iterator[Cause]:
        # upstream: customresource/validator.go:validateScaleSpec, validateScaleStatus
        if self.scale is None:
            return
        yield from _wrong_replicas(self.scale.spec_text, self.scale.spec, obj)
        yield from _wrong_replicas(self.scale.status_text, self.scale.status, obj)
        for text in self.scale.selector.find(obj) if self.scale.selector else ():
            try:
                parse_selector(str(text))
            except SelectorError as cause:
                yield invalid(self.scale.selector_text, text, str(cause))


def _content(obj: Json) -> Json:
    """`obj` without what every object has and no definition describes."""
    return {key: value for key, value in obj.items() if key not in IDENTITY}


def _with_plain_metadata(obj: Json, notes: Notes) -> Json:
    place, schema = Place(Place(), "metadata"), schemas().of_definition(_METADATA)
    return {**obj, "metadata": read(schema, obj.get("metadata") or {}, place, notes)}


def _wrong_replicas(text: str, path: JsonPath, obj: Json) -> Iterator[Cause]:
    value: Any = obj
    for name in path.names or ():
        if not isinstance(value, dict):
            kind = "[]interface {}" if isinstance(value, list) else "string"
            why = f"{text} accessor error: {value} is of the type {kind}, expected map[string]"
            yield invalid(text, 0, f"{why}interface{{}}")
            return
        if name not in value:
            return
        value = value[name]
    if isinstance(value, bool) or not isinstance(value, int):
        return
    if value < 0:
        yield invalid(text, value, "should be a non-negative integer")
    if value > INT32_MAX:
        yield invalid(text, value, f"should be less than or equal to {INT32_MAX}")
