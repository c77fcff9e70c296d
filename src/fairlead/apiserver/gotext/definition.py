"""Parts of CustomResourceDefinitions as `field.Invalid` quotes them.

Upstream quotes values of its internal Go types: all fields under their Go names, even fields that
are nil.

upstream: apiextensions-apiserver/pkg/apis/apiextensions/{types,types_jsonschema}.go
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.api.json import Json

# Go name, JSON name and zero value of each field, in upstream's order.
_SCHEMA: Final[tuple[tuple[str, str, Any], ...]] = (
    ("ID", "id", ""),
    ("Schema", "$schema", ""),
    ("Ref", "$ref", None),
    ("Description", "description", ""),
    ("Type", "type", ""),
    ("Nullable", "nullable", False),
    ("Format", "format", ""),
    ("Title", "title", ""),
    ("Default", "default", None),
    ("Maximum", "maximum", None),
    ("ExclusiveMaximum", "exclusiveMaximum", False),
    ("Minimum", "minimum", None),
    ("ExclusiveMinimum", "exclusiveMinimum", False),
    ("MaxLength", "maxLength", None),
    ("MinLength", "minLength", None),
    ("Pattern", "pattern", ""),
    ("MaxItems", "maxItems", None),
    ("MinItems", "minItems", None),
    ("UniqueItems", "uniqueItems", False),
    ("MultipleOf", "multipleOf", None),
    ("Enum", "enum", None),
    ("MaxProperties", "maxProperties", None),
    ("MinProperties", "minProperties", None),
    ("Required", "required", None),
    ("Items", "items", None),
    ("AllOf", "allOf", None),
    ("OneOf", "oneOf", None),
    ("AnyOf", "anyOf", None),
    ("Not", "not", None),
    ("Properties", "properties", None),
    ("AdditionalProperties", "additionalProperties", None),
    ("PatternProperties", "patternProperties", None),
    ("Dependencies", "dependencies", None),
    ("AdditionalItems", "additionalItems", None),
    ("Definitions", "definitions", None),
    ("ExternalDocs", "externalDocs", None),
    ("Example", "example", None),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", None),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", False),
    ("XIntOrString", "x-kubernetes-int-or-string", False),
    ("XListMapKeys", "x-kubernetes-list-map-keys", None),
    ("XListType", "x-kubernetes-list-type", None),
    ("XMapType", "x-kubernetes-map-type", None),
    ("XValidations", "x-kubernetes-validations", None),
)
_RULE: Final[tuple[tuple[str, str, Any], ...]] = (
    ("Rule", "rule", ""),
    ("Message", "message", ""),
    ("MessageExpression", "messageExpression", ""),
    ("Reason", "reason", None),
    ("FieldPath", "fieldPath", ""),
    ("OptionalOldSelf", "optionalOldSelf", None),
)
_VERSION: Final[tuple[tuple[str, str, Any], ...]] = (
    ("Name", "name", ""),
    ("Served", "served", False),
    ("Storage", "storage", False),
    ("Deprecated", "deprecated", False),
    ("DeprecationWarning", "deprecationWarning", None),
)
_HOISTED: Final = ("Schema", "Subresources", "AdditionalPrinterColumns", "SelectableFields")


def shown_rule(rule: Json) -> Json:
    """Return the validation rule `rule` in the form that errors quote, with Go field names."""
    return {shown: rule.get(key, zero) for shown, key, zero in _RULE}


def shown_versions(versions: list[Json]) -> list[Json]:
    """Return `versions` in the form that errors quote, with Go field names.

    The fields in `_HOISTED` are always null in the result. Upstream prints null only if a field
    has the same value in all versions, because upstream then keeps the value outside the versions.
    If the values differ, upstream prints the value of each version.
    """
    return [
        {shown: version.get(key, zero) for shown, key, zero in _VERSION} | dict.fromkeys(_HOISTED)
        for version in versions
    ]


def shown_schema(raw: Json) -> Json:
    """Return the schema `raw` in the form that errors quote, with Go field names."""
    return {shown: _shown(key, raw.get(key, zero)) for shown, key, zero in _SCHEMA}


def _shown(key: str, value: Any) -> Any:
    if value is None:
        return None
    match key:
        case "items":
            one = shown_schema(value) if isinstance(value, dict) else None
            several = None if one is not None else [shown_schema(item) for item in value]
            return {"Schema": one, "JSONSchemas": several}
        case "allOf" | "oneOf" | "anyOf":
            return [shown_schema(one) for one in value]
        case "not":
            return shown_schema(value)
        case "properties" | "patternProperties" | "definitions":
            return {name: shown_schema(value[name]) for name in sorted(value)}
        case "additionalProperties" | "additionalItems":
            schema = shown_schema(value) if isinstance(value, dict) else None
            return {"Allows": value is not False, "Schema": schema}
        case "x-kubernetes-validations":
            return [shown_rule(rule) for rule in value]
        case _:
            return value
