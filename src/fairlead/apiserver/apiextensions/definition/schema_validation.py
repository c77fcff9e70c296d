"""Validates the schema in a CustomResourceDefinition.

The CEL rules in a schema are compiled only if the schema is structural and its defaults are valid.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/validation/validation.go:
validateCustomResourceDefinitionValidation, ValidateCustomResourceDefinitionOpenAPISchema,
pkg/apis/apiextensions/v1/marshal.go:JSONSchemaPropsOrArray.UnmarshalJSON,
apiextensions-apiserver/pkg/apiserver/schema/defaulting/validation.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.api.json import Json
from fairlead.apiserver.apiextensions.cel.rule import broken_rules
from fairlead.apiserver.apiextensions.definition.list_validation import list_causes
from fairlead.apiserver.apiextensions.definition.rule_cost import (
    ExpressionLengthBudget,
    RuleCostTotal,
    inner_cardinality,
)
from fairlead.apiserver.apiextensions.definition.rule_validation import (
    RuleContext,
    expression_causes,
    rule_field_causes,
)
from fairlead.apiserver.apiextensions.definition.structural_validation import (
    properties_to_check,
    structural_causes,
)
from fairlead.apiserver.apiextensions.schema.pruning import pruned_value
from fairlead.apiserver.apiextensions.schema.structural import ABSENT, structural
from fairlead.apiserver.apiextensions.schema.value_validation import (
    NIL_PATH,
    duplicate_item_causes,
    value_causes,
)
from fairlead.apiserver.error import Cause
from fairlead.apiserver.gotext.definition import shown_schema
from fairlead.apiserver.schema.field_location import FieldLocation
from fairlead.apiserver.validation.meta.field import (
    bounded,
    forbidden,
    invalid,
    not_supported,
    required,
)
from fairlead.cel.cost.runtime_cost import OutOfBudgetError
from fairlead.cel.program import OUT_OF_BUDGET

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_IDENTITY: Final = ("apiVersion", "kind", "metadata")
# Keywords of OpenAPI that structural schemas must not use.
_UNSUPPORTED: Final = (
    *("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"),
)
_ALLOWED_WITH_STATUS: Final = (
    *("Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum"),
    *("ExclusiveMinimum", "MaxLength", "MinLength", "Pattern", "MaxItems", "MinItems"),
    *("UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs", "Example"),
    *("XPreserveUnknownFields", "XValidations"),
)
_JUNCTIONS: Final = ("allOf", "oneOf", "anyOf")
_WITH_CHILDREN: Final = ("properties", "additionalProperties", "not", "items", *_JUNCTIONS)


class _NodeContext(Struct, frozen=True):
    """What the validation of a schema node needs to know about the enclosing schemas.

    The docstring of RuleContext explains `cardinality` and `uncorrelatable_from`.
    """

    cost_total: RuleCostTotal
    is_root: bool = False
    # True for the apiVersion, kind and metadata of an API object, and for the nodes inside them.
    is_identity: bool = False
    # The reason why the node must not have a default; None if it may have one.
    default_forbidden: str | None = None
    uncorrelatable_from: str = ""
    compiles_rules: bool = False  # whether the node's validation rules are compiled
    cardinality: int | None = 1


def schema_causes(
    raw: Json,
    field: str,
    length_budget: ExpressionLengthBudget | None = None,
    *,
    has_status: bool = False,
) -> Iterator[Cause]:
    """Yield the errors of the root schema `raw` at `field`.

    If `length_budget` is None, the CEL rules in the schema are not compiled. `has_status` is True
    if the version has the status subresource.
    """
    malformed = next(malformed_paths(raw, field), None)
    if malformed is not None:
        yield invalid(malformed, "", "the value has the wrong type")
        return
    if has_status:
        yield from _root_with_status_causes(raw, field)
    if raw.get("nullable"):
        yield forbidden(f"{field}.nullable", "nullable cannot be true at the root")
    structural_errors: list[Cause] = []
    if _can_be_structural(raw):
        structural_errors = list(structural_causes(raw, field)) or list(default_causes(raw, field))
        yield from structural_errors
    compiles_rules = length_budget is not None and not structural_errors and _can_be_structural(raw)
    cost_total = RuleCostTotal(length_budget)
    yield from _node_causes(
        raw, field, _NodeContext(cost_total, is_root=True, compiles_rules=compiles_rules)
    )
    yield from cost_total.total_causes(field)


def _root_with_status_causes(raw: Json, field: str) -> Iterator[Cause]:
    """Yield the errors of `raw` as the root schema of a version with the status subresource."""
    type_name = raw.get("type", "")
    if type_name and type_name != "object":
        problem = (
            'only "object" is allowed as the type at the root of the schema if the status '
            "subresource is enabled"
        )
        yield invalid(f"{field}.type", type_name, problem)
    shown = shown_schema(raw)
    if any(value for key, value in shown.items() if key not in _ALLOWED_WITH_STATUS):
        problem = (
            f"only [{' '.join(_ALLOWED_WITH_STATUS)}] fields are allowed at the root of the schema "
            "if the status subresource is enabled"
        )
        yield invalid(field, shown, problem)


def _can_be_structural(raw: Json) -> bool:
    """Return whether a schema can be parsed as a structural schema."""
    own = any(raw.get(key) for key in (*_UNSUPPORTED, "$schema")) or raw.get("type") == "null"
    if own or isinstance(raw.get("items"), list):
        return False
    if raw.get("x-kubernetes-preserve-unknown-fields") is False:
        return False
    return all(_can_be_structural(inner) for inner in _children(raw))


def _children(raw: Json) -> Iterator[Json]:
    for _, inner in properties_to_check(raw):
        yield inner
    for key in ("items", "additionalProperties", "not"):
        if isinstance(raw.get(key), dict):
            yield raw[key]
    for key in _JUNCTIONS:
        yield from raw.get(key) or ()


def _node_causes(raw: Json, field: str, context: _NodeContext) -> Iterator[Cause]:
    """Yield the errors of a schema node and the nodes inside it; errors of CEL rules come last."""
    causes = [
        *_keyword_causes(raw, field, context),
        *_child_causes(raw, field, context),
        *_extension_causes(raw, field),
        *list_causes(raw, field),
        *rule_field_causes(raw, field),
    ]
    yield from causes
    if context.compiles_rules and not causes:
        is_object = context.is_root or bool(raw.get("x-kubernetes-embedded-resource"))
        rule_context = RuleContext(
            context.cost_total,
            context.cardinality,
            context.uncorrelatable_from,
            is_object=is_object,
        )
        yield from expression_causes(raw, field, rule_context)


def _keyword_causes(raw: Json, field: str, context: _NodeContext) -> Iterator[Cause]:
    type_name = raw.get("type") or ""
    if type_name and type_name not in _TYPES:
        yield not_supported(f"{field}.type", type_name, _TYPES)
    if raw.get("default") is not None and context.default_forbidden is not None:
        yield forbidden(f"{field}.default", f"must not be set {context.default_forbidden}")
    for key in _UNSUPPORTED:
        if raw.get(key) or (key in ("additionalItems", "dependencies") and key in raw):
            yield forbidden(f"{field}.{key}", f"{key} is not supported")
    if type_name == "null":
        problem = "type cannot be set to null, use nullable as an alternative"
        yield forbidden(f"{field}.type", problem)
    if isinstance(raw.get("items"), list):
        yield forbidden(f"{field}.items", "items must be a schema object and not an array")
    if context.is_identity and raw.get("x-kubernetes-embedded-resource"):
        problem = "must not be used inside of resource meta"
        yield forbidden(f"{field}.x-kubernetes-embedded-resource", problem)
    if raw.get("uniqueItems"):
        problem = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{field}.uniqueItems", problem)


def _extension_causes(raw: Json, field: str) -> Iterator[Cause]:
    unknown, map_type = "x-kubernetes-preserve-unknown-fields", raw.get("x-kubernetes-map-type")
    if raw.get(unknown) is False:
        yield invalid(f"{field}.{unknown}", raw[unknown], "must be true or undefined")
    if map_type is None:
        return
    type_name = raw.get("type") or ""
    if type_name != "object":
        problem = "must be object if x-kubernetes-map-type is specified"
        yield (
            invalid(f"{field}.type", type_name, problem)
            if type_name
            else required(f"{field}.type", problem)
        )
    if map_type not in ("atomic", "granular"):
        yield not_supported(f"{field}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _child_causes(raw: Json, field: str, context: _NodeContext) -> Iterator[Cause]:
    if raw.keys().isdisjoint(_WITH_CHILDREN):
        return
    context = replace(context, cardinality=inner_cardinality(raw, context.cardinality))
    inner = replace(context, is_root=False)
    yield from _additional_properties_causes(raw, field, inner)
    in_property = _property_context(raw, field, inner)
    for name, one in properties_to_check(raw):
        path = f"{field}.properties[{name}]"
        yield from _node_causes(one, path, _identity_context(raw, name, context, in_property))
    without_rules = replace(inner, compiles_rules=False)
    if isinstance(raw.get("not"), dict):
        yield from _node_causes(raw["not"], f"{field}.not", without_rules)
    for key in _JUNCTIONS:
        for index, one in enumerate(raw.get(key) or ()):
            yield from _node_causes(one, f"{field}.{key}[{index}]", without_rules)
    if isinstance(raw.get("items"), dict):
        if raw.get("x-kubernetes-list-type") != "map":
            inner = replace(inner, uncorrelatable_from=inner.uncorrelatable_from or field)
        yield from _node_causes(raw["items"], f"{field}.items", inner)


def _additional_properties_causes(raw: Json, field: str, context: _NodeContext) -> Iterator[Cause]:
    additional = raw.get("additionalProperties")
    path = f"{field}.additionalProperties"
    if raw.get("properties") and (isinstance(additional, dict) or additional is False):
        yield forbidden(path, "additionalProperties and properties are mutual exclusive")
    if isinstance(additional, dict):
        if context.is_identity:
            problem = "inside additionalProperties applying to object metadata"
            context = replace(context, default_forbidden=problem)
        yield from _node_causes(additional, path, context)


def _property_context(raw: Json, field: str, inner: _NodeContext) -> _NodeContext:
    """Return the context in which the `properties` of the schema `raw` are validated.

    `inner` is the context of other subschemas, such as `items`.
    """
    if raw.get("x-kubernetes-map-type", "granular") in ("atomic", "granular"):
        return inner
    return replace(inner, uncorrelatable_from=inner.uncorrelatable_from or field)


def _identity_context(
    raw: Json, name: str, context: _NodeContext, inner: _NodeContext
) -> _NodeContext:
    """Return the context in which the schema of the property `name` is validated.

    `context` is the context of `raw`, which declares the property. `inner` is the context of the
    other properties. Only the apiVersion, kind and metadata of an API object have another context,
    which records that these fields identify the object.
    """
    if name not in _IDENTITY or not (context.is_root or raw.get("x-kubernetes-embedded-resource")):
        return inner
    default_forbidden = f"in top-level {name}" if context.is_root else inner.default_forbidden
    return replace(inner, is_identity=True, default_forbidden=default_forbidden)


# --- form ----------------------------------------------------------------------------------------

# Decoding a definition does not check the JSON types in schemas below `items` and
# `additionalProperties`. They are checked here.

_TEXTS: Final = (
    *("type", "format", "pattern", "title", "description", "id", "$schema", "$ref"),
    *("x-kubernetes-list-type", "x-kubernetes-map-type"),
)
_FLAGS: Final = (
    *("nullable", "uniqueItems", "exclusiveMinimum", "exclusiveMaximum"),
    *("x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource"),
    "x-kubernetes-int-or-string",
)
_BOUNDS: Final = ("minimum", "maximum", "multipleOf")
_COUNTS: Final = (
    *("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"),
)
_MAPS: Final = ("properties", "patternProperties", "definitions", "dependencies")
_LISTS: Final = ("allOf", "anyOf", "oneOf", "enum")
_PYTHON_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    **dict.fromkeys(_TEXTS, str),
    **dict.fromkeys(_FLAGS, bool),
    **dict.fromkeys(_BOUNDS, (int, float)),
    **dict.fromkeys(_COUNTS, int),
    **dict.fromkeys(_MAPS, dict),
    **dict.fromkeys(_LISTS, list),
    "not": dict,
}
_TEXT_LISTS: Final = ("required", "x-kubernetes-list-map-keys")
_RULE_TEXTS: Final = ("rule", "message", "messageExpression", "reason", "fieldPath")


def malformed_paths(raw: Any, field: str) -> Iterator[str]:
    """Yield the path of each value in the schema `raw` that has a wrong JSON type.

    `field` is the path of `raw`. The nodes inside a malformed node are not examined.
    """
    if not isinstance(raw, dict):
        yield field
        return
    malformed = [key for key in raw if raw[key] is not None and not _is_well_formed(key, raw[key])]
    yield from (f"{field}.{key}" for key in malformed)
    if not malformed:
        for name, inner in properties_to_check(raw):
            yield from malformed_paths(inner, f"{field}.properties[{name}]")
        for key in ("allOf", "anyOf", "oneOf"):
            for index, inner in enumerate(raw.get(key) or ()):
                yield from malformed_paths(inner, f"{field}.{key}[{index}]")
        for key in ("items", "additionalProperties", "not"):
            if isinstance(raw.get(key), dict):
                yield from malformed_paths(raw[key], f"{field}.{key}")


def _is_well_formed(key: str, value: Any) -> bool:
    if key in _TEXT_LISTS:
        return isinstance(value, list) and all(isinstance(one, str) for one in value)
    if key == "x-kubernetes-validations":
        return isinstance(value, list) and all(_is_rule(one) for one in value)
    if key in (*_BOUNDS, *_COUNTS) and isinstance(value, bool):
        return False
    return isinstance(value, _PYTHON_TYPES.get(key, object))


def _is_rule(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    texts = (value.get(key) for key in _RULE_TEXTS)
    return all(text is None or isinstance(text, str) for text in texts)


# --- defaults ------------------------------------------------------------------------------------


def default_causes(raw: Json, field: str) -> Iterator[Cause]:
    """Yield the errors of the default values in the schema at `field`."""
    if raw.get("default") is not None:
        yield from _causes_of_default(raw, f"{field}.default")
    for name, inner in properties_to_check(raw):
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
        subpath = "" if cause.field in ("", NIL_PATH) else f".{cause.field}".replace(".[", "[")
        yield Cause(cause.reason, cause.message, f"{path}{subpath}")
