"""Checks whether a schema is structural, which means that it declares the type of every value.

`allOf`, `anyOf`, `oneOf` and `not` are junctions. If a schema inside a junction validates a value,
the schema outside the junction must declare that value.

upstream: apiextensions-apiserver/pkg/apiserver/schema/{validation,complete}.go
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.api.json import Json
from fairlead.api.text.pattern import compiled_pattern
from fairlead.apiserver.error import Cause
from fairlead.apiserver.validation.meta.field import forbidden, invalid, required

ROOT: Final = "at the root"
ITEM: Final = "for specified array items"
FIELD: Final = "for specified object fields"
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_UNKNOWN: Final = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_INT_OR_STRING_KEY: Final = "x-kubernetes-int-or-string"
_JUNCTIONS: Final = ("anyOf", "allOf", "oneOf")
# Keywords that are forbidden in value validations, with the error.
_FORBIDDEN_IN_VALIDATIONS: Final = (
    ("type", "must be empty"),
    ("additionalProperties", "must be undefined"),
    ("default", "must be undefined"),
    ("title", "must be empty"),
    ("description", "must be empty"),
    ("nullable", "must be false"),
    (_UNKNOWN, "must be false"),
    (_EMBEDDED, "must be false"),
    (_INT_OR_STRING_KEY, "must be false"),
    ("x-kubernetes-list-map-keys", "must be empty"),
    ("x-kubernetes-list-type", "must be undefined"),
    ("x-kubernetes-map-type", "must be undefined"),
    ("x-kubernetes-validations", "must be empty"),
)
_PATTERN_PROBLEMS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "trailing \\": "trailing backslash at end of expression",
}
_PLAIN_KEYS: Final = frozenset(("type", "description"))
_SCALARS: Final = ("string", "integer", "boolean", "number")
_ONLY_NAMES: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly "
    "specified"
)
_NO_FIELDS: Final = (
    f"must not be empty if {_EMBEDDED} is true without x-kubernetes-preserve-unknown-fields"
)


def properties_to_check(raw: Json) -> Iterator[tuple[str, Json]]:
    """Yield (name, schema) of each property in `raw` that can have errors.

    A property that has only a scalar type and a description cannot have errors. Most properties
    have this form.
    """
    for name, inner in (raw.get("properties") or {}).items():
        is_plain = (
            type(inner) is dict
            and inner.keys() <= _PLAIN_KEYS
            and inner.get("type") in _SCALARS
            and type(inner.get("description", "")) is str
        )
        if not is_plain:
            yield name, inner


def structural_causes(raw: Json, field: str) -> Iterator[Cause]:
    """Yield the reasons why the root schema at `field` is not structural."""
    found = [*_node_causes(raw, field, ROOT), *_undeclared_in_junctions(raw, raw, field, field)]
    yield from sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")


def _node_causes(raw: Json, field: str, level: str) -> Iterator[Cause]:
    items, additional = raw.get("items"), raw.get("additionalProperties")
    if isinstance(items, dict):
        yield from _node_causes(items, f"{field}.items", ITEM)
    elif raw.get("type") == "array":
        yield required(f"{field}.items", "must be specified")
    for name, inner in properties_to_check(raw):
        yield from _node_causes(inner, f"{field}.properties[{name}]", FIELD)
    if additional is not None and level == ROOT:
        yield forbidden(f"{field}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _node_causes(additional, f"{field}.additionalProperties", FIELD)
    yield from _extension_causes(raw, field)
    first_of_all: Json = next(iter(raw.get("allOf") or ()), {})
    yield from _value_validation_causes(
        raw,
        field,
        is_int_or_string=raw.get("anyOf") == _INT_OR_STRING,
        is_int_or_string_in_all=first_of_all.get("anyOf") == _INT_OR_STRING,
    )
    yield from _type_causes(raw, field, level)
    yield from _object_field_causes(raw, field, level)


def _extension_causes(raw: Json, field: str) -> Iterator[Cause]:
    if raw.get(_INT_OR_STRING_KEY):
        problem = "must be false if x-kubernetes-int-or-string is true"
        for other in (_UNKNOWN, _EMBEDDED):
            if raw.get(other):
                yield invalid(f"{field}.{other}", raw[other], problem)
    if raw.get(_EMBEDDED):
        if raw.get("additionalProperties") is not None:
            problem = f"must not be used if {_EMBEDDED} is set"
            yield forbidden(f"{field}.additionalProperties", problem)
        if not raw.get(_UNKNOWN) and not raw.get("properties"):
            yield required(f"{field}.properties", _NO_FIELDS)


def _type_causes(raw: Json, field: str, level: str) -> Iterator[Cause]:
    """Yield the errors of the type of a schema node.

    The type may be missing only if the node is int-or-string or preserves unknown fields.
    """
    name, path_ = raw.get("type") or "", f"{field}.type"
    if raw.get(_EMBEDDED) and name != "object":
        problem = f"must be object if {_EMBEDDED} is true"
        yield invalid(path_, name, problem) if name else required(path_, problem)
    elif not name and not raw.get(_INT_OR_STRING_KEY) and not raw.get(_UNKNOWN):
        yield required(path_, f"must not be empty {level}")
    if level == ROOT and name and name != "object":
        yield invalid(path_, name, "must be object at the root")


def _object_field_causes(raw: Json, field: str, level: str) -> Iterator[Cause]:
    """Yield the errors of the properties apiVersion, kind and metadata, if they are declared."""
    fields = raw.get("properties") or {}
    if level == ROOT or raw.get(_EMBEDDED):
        for key, type_required in (
            ("kind", "string"),
            ("apiVersion", "string"),
            ("metadata", "object"),
        ):
            if key in fields and fields[key].get("type") != type_required:
                name = fields[key].get("type") or ""
                yield invalid(f"{field}.properties[{key}].type", name, f"must be {type_required}")
    if level == ROOT and "metadata" in fields:
        rest = {key: value for key, value in fields["metadata"].items() if key != "type"}
        rest.pop("default", None)
        if set(rest.get("properties") or ()) <= {"name", "generateName"}:
            rest.pop("properties", None)
        if any(key in _METADATA_KEYWORDS for key in rest):
            yield forbidden(f"{field}.properties[metadata]", _ONLY_NAMES)


_METADATA_KEYWORDS: Final = (
    *("title", "description", "nullable", "items", "properties", "additionalProperties"),
    *("allOf", "anyOf", "oneOf", "not", "required", "enum", "minProperties", "maxProperties"),
    *("pattern", "format", "x-kubernetes-validations"),
    *(_UNKNOWN, _EMBEDDED, _INT_OR_STRING_KEY, "x-kubernetes-map-type", "x-kubernetes-list-type"),
)


def _value_validation_causes(
    raw: Json, field: str, *, is_int_or_string: bool = False, is_int_or_string_in_all: bool = False
) -> Iterator[Cause]:
    """Yield the errors of the keywords allOf, anyOf, oneOf, not and pattern.

    The schemas in allOf, anyOf, oneOf and not must not declare types. Two anyOf lists may
    declare the types integer and string, and are not checked:

    - the anyOf of `raw`, if `is_int_or_string` is True
    - the anyOf of the first schema in allOf, if `is_int_or_string_in_all` is True
    """
    for junction in _JUNCTIONS:
        if junction == "anyOf" and is_int_or_string:
            continue
        for index, inner in enumerate(raw.get(junction) or ()):
            may_have_type = junction == "allOf" and is_int_or_string_in_all and not index
            yield from _validation_node_causes(
                inner, f"{field}.{junction}[{index}]", is_int_or_string=may_have_type
            )
    if raw.get("not") is not None:
        yield from _validation_node_causes(raw["not"], f"{field}.not")
    pattern = raw.get("pattern")
    if pattern:
        try:
            compiled_pattern(pattern)
        except ValueError as cause:
            problem = f"must be a valid regular expression, but isn't: {_regexp_error(str(cause))}"
            yield invalid(f"{field}.pattern", pattern, problem)


def _regexp_error(problem: str) -> str:
    """Return `problem`, the error of an invalid pattern, in the words of Go's regexp package."""
    problem_text, _, path_ = problem.partition(": ")
    return f"error parsing regexp: {_PATTERN_PROBLEMS.get(problem_text, problem_text)}: `{path_}`"


def _validation_node_causes(
    raw: Json, field: str, *, is_int_or_string: bool = False
) -> Iterator[Cause]:
    yield from _value_validation_causes(raw, field, is_int_or_string=is_int_or_string)
    if isinstance(raw.get("items"), dict):
        yield from _validation_node_causes(raw["items"], f"{field}.items")
    for name, inner in (raw.get("properties") or {}).items():
        yield from _validation_node_causes(inner, f"{field}.properties[{name}]")
    for key, problem in _FORBIDDEN_IN_VALIDATIONS:
        if raw.get(key) or (key in ("additionalProperties", "default") and key in raw):
            yield forbidden(f"{field}.{key}", f"{problem} to be structural")
    if "metadata" in (raw.get("properties") or {}):
        problem = "must not be specified in a nested context"
        yield forbidden(f"{field}.properties[metadata]", problem)


def _undeclared_in_junctions(
    raw: Json, declared: Json, declared_path: str, validation_path: str
) -> Iterator[Cause]:
    """Yield an error for each field that junctions validate but the schema does not declare.

    Junctions are `allOf`, `anyOf`, `oneOf` and `not`. The junctions are in `raw`, which is at
    `validation_path`. `declared` is the schema that must declare the fields, and its path is
    `declared_path`.
    """
    if raw.get("not") is not None:
        yield from _undeclared_causes(raw["not"], declared, declared_path, f"{validation_path}.not")
    for junction in _JUNCTIONS:
        for index, inner in enumerate(raw.get(junction) or ()):
            yield from _undeclared_causes(
                inner, declared, declared_path, f"{validation_path}.{junction}[{index}]"
            )


def _undeclared_causes(
    raw: Json, declared: Json, declared_path: str, validation_path: str
) -> Iterator[Cause]:
    yield from _undeclared_in_junctions(raw, declared, declared_path, validation_path)
    if isinstance(raw.get("items"), dict):
        if isinstance(declared.get("items"), dict):
            inner = declared["items"]
            yield from _undeclared_causes(
                raw["items"], inner, f"{declared_path}.items", f"{validation_path}.items"
            )
        else:
            yield required(
                f"{declared_path}.items", f"because it is defined in {validation_path}.items"
            )
    fields = declared.get("properties") or {}
    for name, inner in (raw.get("properties") or {}).items():
        segment = f"properties[{name}]"
        if name in fields:
            yield from _undeclared_causes(
                inner, fields[name], f"{declared_path}.{segment}", f"{validation_path}.{segment}"
            )
        else:
            yield required(
                f"{declared_path}.{segment}",
                f"because it is defined in {validation_path}.{segment}",
            )
