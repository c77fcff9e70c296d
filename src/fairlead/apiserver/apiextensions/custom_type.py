"""CustomType: decodes and validates the objects of one version of a CustomResourceDefinition.

upstream: apiextensions-apiserver/pkg/registry/customresource/strategy.go,
apiextensions-apiserver/pkg/apiserver/schema/objectmeta/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from msgspec import Struct

from fairlead.api.json import Json
from fairlead.api.selector import SelectorError, parse_selector
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.json_path import JsonPath
from fairlead.apiserver.apiextensions.schema.managed_field_schema import object_schema
from fairlead.apiserver.apiextensions.schema.pruning import pruned_and_defaulted, pruned_object
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, Structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    NIL_PATH,
    duplicate_item_causes,
    member_path,
    value_causes,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.printers.column import Printer
from fairlead.apiserver.schema.decoder import read
from fairlead.apiserver.schema.field_location import FieldLocation, Notes
from fairlead.apiserver.schema.model import Schema, schemas
from fairlead.apiserver.validation.meta.field import bounded, invalid, required
from fairlead.apiserver.validation.meta.format import dns_1035_problems, path_segment_problems
from fairlead.apiserver.validation.meta.object_meta import check_labels
from fairlead.cel.cost.runtime_cost import OutOfBudgetError
from fairlead.cel.program import OUT_OF_BUDGET

INT32_MAX: Final = 2**31 - 1
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_RULES_SKIPPED: Final = (
    "some validation rules were not checked because the object was invalid; correct the existing "
    "errors to complete validation"
)
# After errors with these reasons, rules are not evaluated, because values may have wrong types.
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


class ScalePaths(Struct, frozen=True):
    """The paths of the values that the Scale of a custom resource shows.

    `spec` and `status` lead to the desired and the current number of replicas. `selector` leads to
    the label selector; it is None if the Scale has no selector. `spec_text`, `status_text` and
    `selector_text` are the texts of these paths in the definition.
    """

    spec_text: str
    spec: JsonPath
    status_text: str
    status: JsonPath
    selector_text: str = ""
    selector: JsonPath | None = None


class CustomType(Struct, frozen=True, eq=False, kw_only=True, dict=True):
    """The type of one version of a custom resource.

    `selectable` contains the fields that field selectors may use. `deprecation` is the warning for
    users of the version, or "" if the version is not deprecated.
    """

    schema: Structural
    printer: Printer
    scale: ScalePaths | None = None
    selectable: tuple[str, ...] = ()
    has_status: bool = False
    deprecation: str = ""

    @cached_property
    def fields(self) -> Schema:
        """The schema for managedFields and server-side apply.

        The schema is built at its first use, because building it takes long for a large definition.
        """
        return object_schema(self.schema)

    @property
    def raw(self) -> Json:
        """The OpenAPI schema as the CustomResourceDefinition contains it."""
        return self.schema.raw

    def pruned(self, obj: Json) -> Json:
        """Return `obj` without the fields that its schema does not declare."""
        return pruned_object(self.schema, obj)

    def pruned_and_defaulted(self, obj: Json, notes: Notes) -> Json:
        """Return `obj` as it is stored: with defaults and without unknown fields.

        `notes` receives the unknown fields. Raises TypeMismatchError for malformed metadata. Raises
        ApiError 413 if the defaults are too large.
        """
        path = FieldLocation(FieldLocation(), "metadata")
        schema = schemas().of_definition(_METADATA)
        metadata = read(schema, obj.get("metadata") or {}, path, notes)
        return pruned_and_defaulted(self.schema, {**obj, "metadata": metadata}, notes.unknown)

    def causes(self, obj: Json, old: Json | None) -> Iterator[Cause]:
        """Yield the validation errors of `obj`; `old` is the object that an update replaces."""
        before = ABSENT if old is None else old
        try:
            schema_causes = list(bounded(value_causes(self.schema, obj, "", before)))
        except OutOfBudgetError:
            yield Cause("FieldValueInvalid", f"Invalid value: null: {OUT_OF_BUDGET}", NIL_PATH)
            return
        found = [*bounded(embedded_object_causes(self.schema, obj, "")), *schema_causes]
        yield from found
        yield from duplicate_item_causes(self.schema, obj, "")
        yield from self._scale_causes(obj)
        if not self.schema.has_rules:
            return
        if any(cause.reason in _BLOCKING for cause in found):
            yield Cause("FieldValueInvalid", f"Invalid value: null: {_RULES_SKIPPED}", NIL_PATH)
            return
        yield from broken_rules(self.schema, obj, ABSENT if old is None else old, "")

    def _scale_causes(self, obj: Json) -> Iterator[Cause]:
        # upstream: customresource/validator.go:validateScaleSpec, validateScaleStatus
        if self.scale is None:
            return
        yield from _replica_causes(self.scale.spec_text, self.scale.spec, obj)
        yield from _replica_causes(self.scale.status_text, self.scale.status, obj)
        for text in self.scale.selector.find(obj) if self.scale.selector else ():
            try:
                parse_selector(str(text))
            except SelectorError as cause:
                yield invalid(self.scale.selector_text, text, str(cause))


def _replica_causes(text: str, path: JsonPath, obj: Json) -> Iterator[Cause]:
    value: Any = obj
    for name in path.names or ():
        if not isinstance(value, dict):
            kind = "[]interface {}" if isinstance(value, list) else "string"
            problem = f"{text} accessor error: {value} is of the type {kind}, expected map[string]"
            yield invalid(text, 0, f"{problem}interface{{}}")
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


# --- embedded objects ----------------------------------------------------------------------------


def embedded_object_causes(schema: Structural, value: Any, path: str) -> Iterator[Cause]:
    """Yield the errors of all embedded API objects in `value`; `path` is the path of `value`."""
    if isinstance(value, dict):
        if schema.is_embedded:
            yield from _object_causes(value, path)
        for key in sorted(value):
            inner = schema.properties.get(key) or schema.additional
            if inner is not None:
                yield from embedded_object_causes(inner, value[key], member_path(schema, path, key))
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from embedded_object_causes(schema.items, item, f"{path}[{index}]")


def _object_causes(value: Json, path: str) -> Iterator[Cause]:
    for key in ("apiVersion", "kind"):
        if key not in value:
            yield required(f"{path}.{key}")
        elif not isinstance(value[key], str):
            yield invalid(f"{path}.{key}", value[key], "must be a string")
        elif not value[key]:
            yield invalid(f"{path}.{key}", "", "must not be empty")
    version, kind = value.get("apiVersion"), value.get("kind")
    if isinstance(version, str) and version.count("/") > 1:
        yield invalid(f"{path}.apiVersion", version, f"unexpected GroupVersion string: {version}")
    problems = dns_1035_problems(kind.lower()) if isinstance(kind, str) and kind else ()
    if problems:
        problem = f"may have mixed case, but should otherwise match: {','.join(problems)}"
        yield invalid(f"{path}.kind", kind, problem)
    meta = value.get("metadata")
    if isinstance(meta, dict):
        yield from _metadata_causes(meta, f"{path}.metadata")


def _metadata_causes(meta: Json, path: str) -> Iterator[Cause]:
    name = meta.get("name")
    for problem in path_segment_problems(name) if isinstance(name, str) and name else ():
        yield invalid(f"{path}.name", name, problem)
    labels = meta.get("labels")
    if isinstance(labels, dict):
        texts = {key: text for key, text in labels.items() if isinstance(text, str)}
        yield from check_labels(f"{path}.labels", texts)
