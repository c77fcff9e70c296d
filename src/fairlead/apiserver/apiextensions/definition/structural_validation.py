"""Whether a schema is structural: whether it says of each value what type it has.

What stands below `allOf`, `anyOf`, `oneOf` and `not` may only restrict values of types that are
told elsewhere.

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
_MIXED: Final = "x-kubernetes-int-or-string"
_JUNCTIONS: Final = ("anyOf", "allOf", "oneOf")
# What restrictions may not say, and how that is put.
_NOT_BELOW: Final = (
    ("type", "must be empty"),
    ("additionalProperties", "must be undefined"),
    ("default", "must be undefined"),
    ("title", "must be empty"),
    ("description", "must be empty"),
    ("nullable", "must be false"),
    (_UNKNOWN, "must be false"),
    (_EMBEDDED, "must be false"),
    (_MIXED, "must be false"),
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
_ONLY_NAMES: Final = (
    "must not specify anything other than name and generateName, but metadata is implicitly "
    "specified"
)
_NO_FIELDS: Final = (
    f"must not be empty if {_EMBEDDED} is true without x-kubernetes-preserve-unknown-fields"
)


def wrong_structure(raw: Json, field: str) -> Iterator[Cause]:
    """Why the schema of whole objects, which stands at `field`, is not structural."""
    found = [*_wrong_type(raw, field, ROOT), *_incomplete_junctions(raw, raw, field, field)]
    yield from sorted(found, key=lambda cause: f"{cause.field}: {cause.message}")


def _wrong_type(raw: Json, field: str, level: str) -> Iterator[Cause]:
    items, additional = raw.get("items"), raw.get("additionalProperties")
    if isinstance(items, dict):
        yield from _wrong_type(items, f"{field}.items", ITEM)
    elif raw.get("type") == "array":
        yield required(f"{field}.items", "must be specified")
    for name, inner in (raw.get("properties") or {}).items():
        yield from _wrong_type(inner, f"{field}.properties[{name}]", FIELD)
    if additional is not None and level == ROOT:
        yield forbidden(f"{field}.additionalProperties", "must not be used at the root")
    if isinstance(additional, dict):
        yield from _wrong_type(additional, f"{field}.additionalProperties", FIELD)
    yield from _wrong_extensions(raw, field)
    yield from _wrong_restrictions(
        raw,
        field,
        is_mixed=raw.get("anyOf") == _INT_OR_STRING,
        is_mixed_in_all=_first_of_all(raw).get("anyOf") == _INT_OR_STRING,
    )
    yield from _wrong_name(raw, field, level)
    yield from _wrong_identity(raw, field, level)


def _first_of_all(raw: Json) -> Json:
    return next(iter(raw.get("allOf") or ()), {})


def _wrong_extensions(raw: Json, field: str) -> Iterator[Cause]:
    if raw.get(_MIXED):
        why = "must be false if x-kubernetes-int-or-string is true"
        for other in (_UNKNOWN, _EMBEDDED):
            if raw.get(other):
                yield invalid(f"{field}.{other}", raw[other], why)
    if raw.get(_EMBEDDED):
        if raw.get("additionalProperties") is not None:
            why = f"must not be used if {_EMBEDDED} is set"
            yield forbidden(f"{field}.additionalProperties", why)
        if not raw.get(_UNKNOWN) and not raw.get("properties"):
            yield required(f"{field}.properties", _NO_FIELDS)


def _wrong_name(raw: Json, field: str, level: str) -> Iterator[Cause]:
    """The name of the type, which must be there."""
    name, where = raw.get("type") or "", f"{field}.type"
    if raw.get(_EMBEDDED) and name != "object":
        why = f"must be object if {_EMBEDDED} is true"
        yield invalid(where, name, why) if name else required(where, why)
    elif not name and not raw.get(_MIXED) and not raw.get(_UNKNOWN):
        yield required(where, f"must not be empty {level}")
    if level == ROOT and name and name != "object":
        yield invalid(where, name, "must be object at the root")


def _wrong_identity(raw: Json, field: str, level: str) -> Iterator[Cause]:
    """What objects say of their kind and name, which is told elsewhere."""
    fields = raw.get("properties") or {}
    if level == ROOT or raw.get(_EMBEDDED):
        for key, wanted in (("kind", "string"), ("apiVersion", "string"), ("metadata", "object")):
            if key in fields and fields[key].get("type") != wanted:
                name = fields[key].get("type") or ""
                yield invalid(f"{field}.properties[{key}].type", name, f"must be {wanted}")
    if level == ROOT and "metadata" in fields:
        rest = {key: value for key, value in fields["metadata"].items() if key != "type"}
        rest.pop("default", None)
        if set(rest.get("properties") or ()) <= {"name", "generateName"}:
            rest.pop("properties", None)
        if any(key in _OF_TYPE for key in rest):
            yield forbidden(f"{field}.properties[metadata]", _ONLY_NAMES)


_OF_TYPE: Final = (
    *("title", "description", "nullable", "items", "properties", "additionalProperties"),
    *("allOf", "anyOf", "oneOf", "not", "required", "enum", "minProperties", "maxProperties"),
    *("pattern", "format", "x-kubernetes-validations"),
    *(_UNKNOWN, _EMBEDDED, _MIXED, "x-kubernetes-map-type", "x-kubernetes-list-type"),
)


def _wrong_restrictions(
    raw: Json, field: str, *, is_mixed: bool = False, is_mixed_in_all: bool = False
) -> Iterator[Cause]:
    """Restrictions of a value; those that make an "int or string" may name types."""
    for junction in _JUNCTIONS:
        if junction == "anyOf" and is_mixed:
            continue
        for at, inner in enumerate(raw.get(junction) or ()):
            mixed = junction == "allOf" and is_mixed_in_all and not at
            yield from _wrong_restriction(inner, f"{field}.{junction}[{at}]", is_mixed=mixed)
    if raw.get("not") is not None:
        yield from _wrong_restriction(raw["not"], f"{field}.not")
    pattern = raw.get("pattern")
    if pattern:
        try:
            compiled_pattern(pattern)
        except ValueError as cause:
            why = f"must be a valid regular expression, but isn't: {_told(str(cause))}"
            yield invalid(f"{field}.pattern", pattern, why)


def _told(problem: str) -> str:
    """What is wrong with a pattern, in the words of upstream's library."""
    what, _, where = problem.partition(": ")
    return f"error parsing regexp: {_PATTERN_PROBLEMS.get(what, what)}: `{where}`"


def _wrong_restriction(raw: Json, field: str, *, is_mixed: bool = False) -> Iterator[Cause]:
    yield from _wrong_restrictions(raw, field, is_mixed=is_mixed)
    if isinstance(raw.get("items"), dict):
        yield from _wrong_restriction(raw["items"], f"{field}.items")
    for name, inner in (raw.get("properties") or {}).items():
        yield from _wrong_restriction(inner, f"{field}.properties[{name}]")
    for key, why in _NOT_BELOW:
        if raw.get(key) or (key in ("additionalProperties", "default") and key in raw):
            yield forbidden(f"{field}.{key}", f"{why} to be structural")
    if "metadata" in (raw.get("properties") or {}):
        why = "must not be specified in a nested context"
        yield forbidden(f"{field}.properties[metadata]", why)


def _incomplete_junctions(raw: Json, known: Json, there: str, here: str) -> Iterator[Cause]:
    """Fields that restrictions at `here` speak of, and that the type at `there` does not have."""
    if raw.get("not") is not None:
        yield from _incomplete(raw["not"], known, there, f"{here}.not")
    for junction in _JUNCTIONS:
        for at, inner in enumerate(raw.get(junction) or ()):
            yield from _incomplete(inner, known, there, f"{here}.{junction}[{at}]")


def _incomplete(raw: Json, known: Json, there: str, here: str) -> Iterator[Cause]:
    yield from _incomplete_junctions(raw, known, there, here)
    if isinstance(raw.get("items"), dict):
        if isinstance(known.get("items"), dict):
            inner = known["items"]
            yield from _incomplete(raw["items"], inner, f"{there}.items", f"{here}.items")
        else:
            yield required(f"{there}.items", f"because it is defined in {here}.items")
    fields = known.get("properties") or {}
    for name, inner in (raw.get("properties") or {}).items():
        step = f"properties[{name}]"
        if name in fields:
            yield from _incomplete(inner, fields[name], f"{there}.{step}", f"{here}.{step}")
        else:
            yield required(f"{there}.{step}", f"because it is defined in {here}.{step}")
